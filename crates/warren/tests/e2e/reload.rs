//! A configuration that is read again while the server runs: nothing ends by it.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use pty_process::{Command, open};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    ChildProcess, Client, Connect, DEADLINE, Daemon, FakeWorker, Form, Gate, Reply, eventually,
    process::settings, within,
};

use crate::{
    cli::{Ran, warren},
    common::{CHAT, ask_for, ask_unfiltered, begin_stream, binary, openai_error, post, serve},
    transport::{Certificate, trusting, worker},
};

/// A server with a configuration file.
struct Configured {
    daemon: Daemon,
    _directory: TempDir,
    file: PathBuf,
}

impl Configured {
    async fn start(text: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("warren.toml");
        std::fs::write(&file, text).unwrap();
        let daemon = serve().bare().set("--config", file.to_str().unwrap()).start().await;
        Self { daemon, _directory: directory, file }
    }

    /// A fake worker `w` with the model `m`.
    async fn worker(&self) -> FakeWorker {
        let secret = std::fs::read_to_string(self.daemon.data_dir().join("worker.secret")).unwrap();
        let connect = Connect::new(self.daemon.address()).header("x-worker-secret", secret.trim());
        connect.form(Form::Binary).join("w", &["m"], 4).await
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.file, text).unwrap();
    }

    /// `warren config reload` with these arguments.
    async fn reload(&self, args: &[&str]) -> Ran {
        reload(&self.daemon.url(), self.daemon.data_dir(), args).await
    }

    async fn setting(&self, name: &str) -> Value {
        let config = self.daemon.admin().get("/admin/config").await.json();
        let settings = config["settings"].as_array().unwrap();
        let found = settings.iter().find(|setting| setting["name"] == name).expect(name);
        found["value"].clone()
    }
}

async fn reload(url: &str, data: &Path, args: &[&str]) -> Ran {
    let token = std::fs::read_to_string(data.join("admin.token")).unwrap();
    let to = ["config", "reload", "--server", url, "--admin-token", token.trim()];
    warren(&[&to[..], args].concat()).await
}

fn names(changes: &Value) -> Vec<&str> {
    let names = changes.as_array().unwrap().iter();
    names
        .map(|change| change["name"].as_str().unwrap_or_else(|| change.as_str().unwrap()))
        .collect()
}

/// Prices, names, limits, access and the log change under a stream, which goes on; the rest is named.
#[tokio::test]
async fn what_can_change_changes_and_a_stream_goes_on() {
    let set = Configured::start("[prices.m]\ninput = 1\noutput = 2\n").await;
    let mut worker = set.worker().await;
    let (job, mut answer) = begin_stream(&set.daemon, &mut worker).await;
    set.write(
        "log = 'debug'\nmax-body-mib = 1\nrequire-key = true\nrouting = 'least-loaded'\n\
         data-dir = '/elsewhere'\n[prices.m]\ninput = 3\noutput = 2\n[models.fast]\ntargets = ['m']\n",
    );
    let told = set.reload(&["--json"]).await.json();
    let changed = ["max_body_mib", "log", "require_key", "models.fast.targets", "prices.m.input"];
    assert_eq!(names(&told["changed"]), changed, "{told}");
    assert_eq!(names(&told["needs_restart"]), ["routing"], "a flag wins over the file: {told}");

    let key = json!({"name": "k", "scopes": ["inference"]});
    let key = set.daemon.admin().post_json("/admin/keys", &key).await.json();
    let keyed = set.daemon.client().with_token(key["key"].as_str().unwrap());
    let refused = set.daemon.client().post_json(CHAT, &ask_for("fast", false)).await;
    openai_error(&refused, 401);
    let long = keyed.post_json(CHAT, &json!({"model": "m", "x": "y".repeat(2 << 20)})).await;
    openai_error(&long, 413);
    let asked = post(&keyed, CHAT, ask_for("fast", false));
    let second = worker.expect_job().await;
    assert_eq!(second.model, "m");
    let usage =
        json!({"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000});
    let body = json!({"id": "c", "object": "chat.completion", "choices": [], "usage": usage});
    worker.complete(&second, 200, &body).await;
    assert_eq!(asked.await.unwrap().status, 200);
    let cost = async || {
        let usage = set.daemon.admin().get("/admin/usage?by=model").await.json();
        usage["rows"].as_array().is_some_and(|all| all.iter().any(|row| row["cost"] == "3.00"))
    };
    eventually("the new price in the ledger", DEADLINE, cost).await;
    assert_eq!(set.setting("max_body_mib").await, 1);
    assert_eq!(set.setting("routing").await, "prefix-affinity", "it is not in force");

    worker.chunk(&job, "data: 2\n\n").await;
    answer.expect("data: 2\n\n").await;
    worker.finish(&job).await;
    assert!(answer.finish().await.text().is_empty());
}

/// A fault is reported to the caller and in the log, with the line, and changes nothing.
#[tokio::test]
async fn a_wrong_configuration_changes_nothing() {
    let set = Configured::start("max-body-mib = 7\n").await;
    for (text, words) in [
        ("max-body-mib = 8\n\nadmin_token = 'hush", "line 3"),
        ("max-body-mib = 8\nmax_queue = 3\n", "line 2: unknown field `max_queue`"),
        ("max-body-mib = 8\n\nidle-timeout-secs = 0\n", "line 3"),
        ("max-body-mib = 8\nlog = '=='\n", "log filter"),
        ("max-body-mib = 8\ntls-cert = '/nowhere.pem'\ntls-key = '/nowhere.pem'\n", "/nowhere.pem"),
    ] {
        set.write(text);
        let refused = set.reload(&[]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(words), "{words}: {refused:?}");
        assert!(refused.err.contains("stays as it was"), "{refused:?}");
        assert!(!refused.err.contains("hush"), "{refused:?}");
        set.daemon.line_with(words).await;
    }
    std::fs::remove_file(&set.file).unwrap();
    assert!(set.reload(&[]).await.err.contains("cannot be read"));
    assert_eq!(set.setting("max_body_mib").await, 7);
    assert!(!set.daemon.log().contains("hush"));
    let stranger = set.daemon.client().post_json("/admin/config/reload", &json!({})).await;
    assert_eq!(stranger.status, 401, "{}", stranger.text());
}

/// The signal does what the command does; the log says what came of it.
#[tokio::test]
async fn a_hang_up_reloads() {
    let set = Configured::start("max-body-mib = 7\n").await;
    set.write("max-body-mib = 8\nmax_queue = 3\n");
    set.daemon.sighup();
    set.daemon.line_with("unknown field `max_queue`").await;
    set.write("max-body-mib = 8\nlog = 'warn'\n");
    set.daemon.sighup();
    let is_set = async || set.setting("max_body_mib").await == 8;
    eventually("the new setting", DEADLINE, is_set).await;
    set.write("max-body-mib = 9\nlog = 'info'\nledger = false\n");
    set.daemon.sighup();
    let told = set.daemon.line_with("needs_restart=\"ledger\"").await;
    assert!(told.contains("max_body_mib"), "{told}");
}

/// Secrets of workers change for new links; those that are there stay.
#[tokio::test]
async fn a_new_worker_secret_is_for_new_workers() {
    let set = Configured::start("worker-secret = 'the-first-secret'\n").await;
    let lent = |secret: &str| {
        let url = set.daemon.url();
        let args = ["worker", "--demo", "--server", &url, "--secret", secret];
        ChildProcess::start("worker", binary(), &args)
    };
    let first = lent("the-first-secret");
    set.daemon.has_workers(1).await;
    set.write("worker-secret = 'the-second-secret'\n");
    let told = set.reload(&[]).await;
    assert!(told.out.contains("worker_secret: another one"), "{told:?}");
    lent("the-first-secret").line_with("401").await;
    let _second = lent("the-second-secret");
    set.daemon.has_workers(2).await;
    assert!(!first.log().contains("lost"), "{}", first.log());
    set.write("");
    let told = set.reload(&[]).await;
    assert!(told.err.contains("start the server again"), "there is no other one: {told:?}");
}

/// Asks for a stream over TLS.
async fn streaming(certificate: &Certificate, address: SocketAddr) -> Incoming {
    let stream = certificate.connect(address, b"http/1.1").await;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.unwrap();
    tokio::spawn(connection);
    let body = Full::new(Bytes::from(ask_unfiltered().to_string()));
    let request = Request::post(CHAT)
        .header("host", address.to_string())
        .header("content-type", "application/json")
        .body(body);
    let asked = tokio::spawn(async move { sender.send_request(request.unwrap()).await });
    within("a head", asked).await.unwrap().unwrap().into_body()
}

/// The next piece of an answer.
async fn event(stream: &mut Incoming) -> String {
    let frame = within("an event", stream.frame()).await.unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

/// A certificate that is renewed in its place is shown to new connections, and a stream over the former one goes on.
#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_connections() {
    let (certificate, data) = (Certificate::new(), TempDir::new().unwrap());
    let (server, address) = certificate.serve(&data).await;
    let url = format!("https://{address}");
    let backend = testkit::MockBackend::start(&["m"]).await;
    let gate = Gate::closed();
    backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &gate));
    let at = backend.url();
    let lend = ["worker", "--backend", &at, "--secret", "s", "--server", &url];
    let lending = trusting(&certificate.file("cert.pem"), &lend);
    server.line_with("worker connected").await;
    let mut stream = streaming(&certificate, address).await;
    gate.open(1);
    assert_eq!(event(&mut stream).await, "data: 1\n\n");

    let renewed = Certificate::new();
    for name in ["cert.pem", "key.pem"] {
        std::fs::copy(renewed.file(name), certificate.file(name)).unwrap();
    }
    server.sighup();
    server.line_with("the certificate has another key").await;
    assert!(server.log().contains("changed=\"tls_cert\""), "{}", server.log());
    renewed.connect(address, b"http/1.1").await;
    assert!(certificate.try_connect(address, b"http/1.1").await.is_err(), "it is not shown");
    gate.open(1);
    assert_eq!(event(&mut stream).await, "data: 2\n\n");
    assert!(!lending.log().contains("lost"), "{}", lending.log());
    let told = worker(&renewed.file("cert.pem"), &url);
    told.line_with("connected").await;
}

/// A server that somebody started at a terminal ends in order when that is closed.
#[tokio::test]
async fn a_terminal_that_is_closed_ends_the_server() {
    let data = TempDir::new().unwrap();
    let (terminal, pts) = open().unwrap();
    let directory = data.path().to_str().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", directory];
    let mut command = Command::new(binary()).args(args);
    for variable in settings() {
        command = command.env_remove(variable);
    }
    let mut child = command.kill_on_drop(true).spawn(pts).unwrap();
    let own = data.path().join("server.json");
    let address = async || {
        let text = std::fs::read(&own).ok()?;
        let file: Value = serde_json::from_slice(&text).ok()?;
        file["urls"][0].as_str()?.strip_prefix("http://")?.parse().ok()
    };
    eventually("the server's file", DEADLINE, async || address().await.is_some()).await;
    let client = Client::new(address().await.unwrap());
    assert_eq!(client.get("/health").await.status, 200);
    drop(terminal);
    let status = within("the end", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(!own.exists(), "it ended in order");
}
