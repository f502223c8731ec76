//! Settings as they are read from flags and files.

use std::time::Duration;

use super::*;

#[test]
fn seconds_may_have_fractions() {
    assert_eq!("0.5".parse(), Ok(Seconds(Duration::from_millis(500))));
    for bad in ["-1", "nan", "inf", "1e30", "soon", ""] {
        assert!(bad.parse::<Seconds>().is_err(), "{bad}");
    }
}

#[test]
fn switches_take_the_usual_words() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: ServeOptions,
    }
    let cases = [("--open", true), ("--open=1", true), ("--open=yes", true), ("--open=0", false)];
    for (flag, value) in cases {
        let line = <Line as clap::Parser>::try_parse_from(["warren", flag]);
        assert_eq!(line.map_err(|error| error.to_string()).unwrap().options.open, Some(value));
    }
}

#[test]
fn localhost_can_be_listened_on() {
    let here = "127.0.0.1:9178".parse().unwrap();
    assert_eq!(listen_address("localhost:9178"), Ok(here));
    assert_eq!(ConfigFile::parse("listen = 'LOCALHOST:9178'").unwrap().serve.listen, Some(here));
    for bad in ["9178", "localhost", "example.org:9178", ""] {
        assert!(listen_address(bad).is_err(), "{bad}");
    }
}

#[test]
fn proxies_are_trusted_by_address_or_network() {
    let trusted = |text: &str| ConfigFile::parse(text).unwrap().serve.trusted_proxies;
    let networks = ["127.0.0.1", "::1", "10.0.0.0/8"].map(|text| text.parse().unwrap());
    let both = trusted("trusted-proxies = ['127.0.0.1', '::1', '10.0.0.0/8']");
    assert_eq!(both, Some(networks.to_vec()));
    let error = format!("{:#}", ConfigFile::parse("trusted_proxies = ['lb.lan']").unwrap_err());
    assert!(error.contains("lb.lan"), "{error}");
}

#[test]
fn a_file_has_server_and_worker_settings() {
    let file = ConfigFile::parse(
        r#"
        listen = "127.0.0.1:1"
        queue-timeout-secs = 0.5
        routing = "prefix-affinity"
        [mesh]
        route = "local-only"
        [room]
        server = ["http://c"]
        [worker]
        max-concurrent = 2
        protocol = "node"
        provider = "gpu"
        server = ["http://a", "http://b"]
        [[worker.backends]]
        url = "http://127.0.0.1:11434"
        models = ["fast=qwen3-8b"]
        endpoints = ["/v1/chat/completions"]
        "#,
    )
    .unwrap();
    assert_eq!(file.serve.queue_timeout_secs, Some(Seconds(Duration::from_millis(500))));
    assert_eq!(file.serve.routing, Some(Routing::PrefixAffinity));
    assert_eq!(file.serve.mesh.route, Some(MeshRoute::LocalOnly));
    assert_eq!(file.worker.max_concurrent, Some(2), "spelled as a flag");
    assert_eq!(file.worker.protocol, Some(LendAs::Node));
    assert_eq!(file.worker.provider.as_deref(), Some("gpu"));
    assert_eq!(file.worker.server.unwrap().len(), 2);
    assert_eq!(file.room.server.unwrap(), ["http://c"]);
    let backend = &file.worker.backends.unwrap()[0];
    assert_eq!(backend.url, "http://127.0.0.1:11434");
    assert_eq!(backend.endpoints.as_deref(), Some(&["/v1/chat/completions".to_owned()][..]));
}

#[test]
fn aliases_are_read_with_their_defaults() {
    let text = "[models.'fast-one']\ntargets = ['a', 'b:3b']\n\
                defaults = { temperature = 0.2, stop = ['x'], nested = { a = 1 } }";
    let models = ConfigFile::parse(text).unwrap().serve.models.unwrap();
    let alias = &models["fast-one"];
    assert_eq!(alias.targets, ["a", "b:3b"]);
    assert_eq!(alias.defaults["temperature"], 0.2);
    assert_eq!(alias.defaults["nested"]["a"], 1);
}

#[test]
fn unknown_settings_are_refused_by_name() {
    let cases = [
        ("max_queue = 1", "max_queue"),
        ("[worker]\nfoo = 1", "foo"),
        ("[mesch]", "mesch"),
        ("[mesh]\nrout = 'mesh'", "rout"),
        ("[workspace]\nmax_session = 1", "max_session"),
        ("[workspace.agents]\nmodle = 'm'", "modle"),
        ("[mesh]\nroute = 'anywhere'", "anywhere"),
        ("mesh = 1", "mesh"),
        ("[models.fast]\ntargets = ['m']\ndefault = {}", "default"),
        ("[models.fast]\ndefaults = {}", "targets"),
        ("models = ['fast']", "models"),
    ];
    for (text, name) in cases {
        let error = format!("{:#}", ConfigFile::parse(text).unwrap_err());
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn the_first_source_wins() {
    let flags = ServeOptions { max_queue_len: Some(1), ..ServeOptions::default() };
    let file =
        ServeOptions { max_queue_len: Some(2), max_body_mib: Some(3), ..ServeOptions::default() };
    let both = flags.or(file);
    assert_eq!((both.max_queue_len, both.max_body_mib), (Some(1), Some(3)));
}
