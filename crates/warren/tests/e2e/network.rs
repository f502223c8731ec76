//! Networks as people have them: proxies on the way, machines that boot in any order, and mistakes in
//! addresses.

use testkit::{ChildProcess, ConnectProxy, MockBackend, RawServer, RefusingPort};

use crate::common::{CHAT, ask, binary, serve};

/// `warren` with these variables in its environment.
fn with(variables: &[(&str, &str)], args: &[&str]) -> ChildProcess {
    let set = variables.iter().map(|(name, value)| format!("{name}={value}"));
    let set: Vec<String> = set.chain([binary().display().to_string()]).collect();
    let args = set.iter().map(String::as_str).chain(args.iter().copied());
    ChildProcess::start("warren", "/usr/bin/env".as_ref(), &args.collect::<Vec<_>>())
}

fn worker(variables: &[(&str, &str)], server: &str, args: &[&str]) -> ChildProcess {
    let lend = ["worker", "--secret", testkit::daemon::WORKER_SECRET, "--server", server];
    with(variables, &[&lend, args].concat())
}

/// Only a proxy leads to the server. The worker's backend is near, and is reached directly.
#[tokio::test]
async fn a_worker_reaches_its_server_by_the_proxy_of_its_environment() {
    let daemon = serve().start().await;
    let proxy = ConnectProxy::to(daemon.address()).await;
    let backend = MockBackend::start(&["m"]).await;
    let lending = worker(
        &[("HTTP_PROXY", &proxy.url())],
        "http://warren.example:9178",
        &["--backend", &backend.url()],
    );
    lending.line_with("connected").await;
    daemon.has_workers(1).await;
    let answer = daemon.client().post_json(CHAT, &ask(false)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let asked = proxy.asked();
    assert!(asked[0].starts_with("CONNECT warren.example:9178 HTTP/1.1\r\n"), "{asked:?}");
    assert_eq!(asked.len(), 1, "the backend is on this machine: {asked:?}");
    let data_dir = daemon.data_dir().display().to_string();
    let status = with(
        &[("http_proxy", &proxy.url())],
        &["status", "--server", "http://warren.example:9178", "--data-dir", &data_dir],
    );
    status.line_with("1 worker").await;
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_and_its_password_is_not() {
    let proxy = ConnectProxy::refusing().await;
    let url = proxy.url().replace("http://", "http://ann:hidden@");
    let lending = worker(&[("ALL_PROXY", &url)], "https://warren.example", &["--demo"]);
    let line = lending.line_with("not connected").await;
    assert!(line.contains("does not allow a connection to warren.example:443"), "{line}");
    assert!(!lending.log().contains("hidden"), "{line}");
    assert!(proxy.asked()[0].contains("Proxy-Authorization: Basic "), "{:?}", proxy.asked());
    let socks =
        worker(&[("ALL_PROXY", "socks5://127.0.0.1:1")], "https://warren.example", &["--demo"]);
    socks.line_with("it is a SOCKS proxy").await;
}

/// The address of a model server that is not up yet is found in its own variable.
#[tokio::test]
async fn a_worker_that_boots_before_its_model_server_waits_for_it() {
    let daemon = serve().start().await;
    let later = RefusingPort::take();
    let address = later.address();
    let lending = worker(&[("OLLAMA_HOST", &address.to_string())], &daemon.url(), &[]);
    lending.line_with("waiting for one").await;
    drop(later);
    let _backend = MockBackend::start_at(address, &["m"]).await;
    lending.line_with("connected").await;
    daemon.has_workers(1).await;
}

#[tokio::test]
async fn a_worker_that_never_connects_warns() {
    let nowhere = RefusingPort::take();
    let lending = worker(&[], &nowhere.url(), &["--demo", "--log", "warn"]);
    let line = lending.line_with("still not connected").await;
    assert!(line.contains("could not connect to 127.0.0.1"), "{line}");
    assert_eq!(lending.log().lines().count(), 1, "only warnings: {}", lending.log());
}

/// A proxy that drops the upgrade hands a plain request on, and the server's refusal back.
#[tokio::test]
async fn a_worker_behind_a_proxy_that_drops_upgrades_is_told_so() {
    let proxy = RawServer::start().await;
    let lending = worker(&[], &proxy.url(), &["--demo"]);
    let (mut connection, _) = proxy.request().await;
    connection.json("426 Upgrade Required", "", r#"{"error":{"message":"this path"}}"#).await;
    let line = lending.line_with("not connected").await;
    assert!(line.contains("a proxy in front of the server has to pass"), "{line}");
}

/// systemd gives a unit up after a few ends in a row, unless it is told not to.
#[test]
fn the_unit_files_survive_any_order_of_boot() {
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for name in ["warren.service", "warren-worker.service"] {
        let unit = std::fs::read_to_string(deploy.join(name)).unwrap();
        let (head, service) = unit.split_once("[Service]").unwrap();
        assert!(head.contains("\nStartLimitIntervalSec=0\n"), "{name}");
        assert!(head.contains("\nAfter=network-online.target"), "{name}");
        assert!(head.contains("\nWants=network-online.target\n"), "{name}");
        assert!(service.contains("\nRestart=always\n"), "{name}");
    }
}
