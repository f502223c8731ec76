//! A real worker at a relay server that is not a Warren.

use serde_json::json;
use testkit::{Gate, MockBackend, RelayServer, Reply, WorkerProcess};

use crate::common::{CHAT, MESSAGES, RESPONSES, ask, binary};

/// The secret that [`WorkerProcess`] presents.
const SECRET: &str = testkit::daemon::WORKER_SECRET;

fn start(server: &RelayServer, backend: &MockBackend, args: &[&str]) -> WorkerProcess {
    let models = ["--models", "m"];
    let args: Vec<_> = models.iter().chain(args).copied().collect();
    WorkerProcess::start(binary(), &server.url(), &backend.url(), "lender", &args)
}

/// The server throws the last status away. So the client gets the chunks that came, and its API's own
/// error.
#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error_event() {
    let server = RelayServer::start(&[("local", SECRET)]).await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = start(&server, &backend, &[]);
    let mut link = server.worker().await;
    let broken = |chunks: &[&str]| Reply::stream(chunks, &Gate::opened()).broken();
    let begun = "data: {\"a\":1}\n\ndata: {\"b";
    for (path, event) in [
        (CHAT, "data: {\"error\":{\"message\":\"the model server"),
        (MESSAGES, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""),
        (RESPONSES, "event: error\ndata: {\"type\":\"error\",\"code\":\"backend_broke\""),
    ] {
        backend.then(broken(&[begun]));
        let answer = link.ask(path, &ask(true)).await;
        assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/event-stream"));
        let last = answer.body.strip_prefix(&format!("{begun}\n\n")).expect("what has come");
        assert!(last.starts_with(event) && last.ends_with("}\n\n"), "{last}");
    }
    // Before the first chunk the status is passed on, and nothing is added to it.
    backend.then(broken(&[]));
    let answer = link.ask(CHAT, &ask(true)).await;
    assert_eq!((answer.status, answer.content_type.as_str()), (502, "application/json"));
    assert!(answer.body.contains("backend_broke"), "{}", answer.body);
    // The link has survived all of this.
    backend.then(Reply::json(200, &json!({"ok": true})));
    assert_eq!(link.ask(CHAT, &ask(false)).await.body, r#"{"ok":true}"#);
}

#[tokio::test]
async fn a_worker_lends_under_the_provider_that_it_is_told() {
    let server = RelayServer::start(&[("local", "another"), ("gpu box", SECRET)]).await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = start(&server, &backend, &["--provider", "gpu box"]);
    let mut link = server.worker().await;
    assert_eq!(link.provider, "gpu box");
    assert_eq!(link.ask(CHAT, &ask(false)).await.status, 200);
    assert!(server.refusals().is_empty());
}

/// Others have failed to authenticate; a worker with the right secret is in within seconds.
#[tokio::test]
async fn a_worker_waits_a_moment_where_nobody_is_let_in() {
    let server = RelayServer::start(&[("local", SECRET)]).await;
    let backend = MockBackend::start(&["m"]).await;
    server.turn_away(2);
    let worker = start(&server, &backend, &[]);
    let link = server.worker().await;
    assert_eq!(link.register["worker_name"], "lender");
    assert_eq!(server.refusals(), ["worker authentication temporarily rate limited"; 2]);
    worker.line_with("retry_in=1s").await;
}
