//! `warren worker --protocol node`: a backend lent as model nodes, to a stock-shaped server and to
//! Warren itself.

use serde_json::{Value, json};
use testkit::{
    ChildProcess, Client, Counts, Daemon, Gate, MockBackend, NodeMessage, NodeServer, Reply,
};

use crate::{
    common::{CHAT, MESSAGES, ask, binary, post},
    node_entry::{NODE_TOKEN, with_nodes},
};

/// A worker that lends a backend as the model `m`, one task at a time.
fn lend_as_node(server: &str, token: &str, backend: &MockBackend) -> ChildProcess {
    let backend = backend.url();
    let args = [
        "worker",
        "--protocol",
        "node",
        "--server",
        server,
        "--secret",
        token,
        "--backend",
        &backend,
        "--models",
        "m",
        "--max-concurrent",
        "1",
        "--name",
        "lender",
    ];
    ChildProcess::start("lender", binary(), &args)
}

async fn chat_only() -> MockBackend {
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    backend
}

/// A stock-shaped server, a backend, and the worker that lends it there.
async fn with_lender() -> (NodeServer, MockBackend, ChildProcess) {
    let (server, backend) = (NodeServer::start(NODE_TOKEN).await, chat_only().await);
    let worker = lend_as_node(&server.url(), NODE_TOKEN, &backend);
    (server, backend, worker)
}

/// The same with a Warren as the server.
async fn with_warren() -> (Daemon, MockBackend, ChildProcess) {
    let (daemon, backend) = (with_nodes().await, chat_only().await);
    let worker = lend_as_node(&daemon.url(), NODE_TOKEN, &backend);
    (daemon, backend, worker)
}

/// A streamed chat completion of these pieces.
fn stream(pieces: &[&str], gate: &Gate) -> Reply {
    let chunk = |piece: &&str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
        format!("data: {delta}\n\n")
    };
    let done = "data: [DONE]\n\n".to_owned();
    Reply::stream(pieces.iter().map(chunk).chain([done]), gate)
}

fn out_of_memory() -> Reply {
    Reply::json(500, &json!({"error": {"message": "out of memory"}}))
}

fn piece(id: u32, text: &str) -> NodeMessage {
    NodeMessage::Piece(id, text.to_owned())
}

#[tokio::test]
async fn a_stock_server_gets_text_as_the_backend_gives_it() {
    let (server, backend, worker) = with_lender().await;
    let mut node = server.node().await;
    assert_eq!((node.model.as_str(), node.name.as_str()), ("m", "lender-1"));
    let gate = Gate::closed();
    backend.then(stream(&["gr\u{fc}n", " \u{1f40d}"], &gate));
    node.task(5, "hi").await;
    let asked = backend.request().await;
    assert_eq!((asked.target.as_str(), &asked.json()["stream"]), (CHAT, &json!(true)));
    gate.open(1);
    assert_eq!(node.answer().await, piece(5, "gr\u{fc}n"));
    gate.open(3);
    assert_eq!(node.text(5).await, " \u{1f40d}");
    assert!(!worker.log().contains(NODE_TOKEN), "{}", worker.log());
}

#[tokio::test]
async fn a_stop_aborts_the_backend_at_once_and_the_slot_is_free() {
    let (server, backend, _worker) = with_lender().await;
    let mut node = server.node().await;
    let gate = Gate::closed();
    backend.then(stream(&["a", "b"], &gate));
    node.task(1, "long").await;
    gate.open(1);
    assert_eq!(node.answer().await, piece(1, "a"));
    node.raw("no json at all".to_owned().into()).await;
    node.stop(1).await;
    backend.aborted(1).await;
    node.task(2, "short").await;
    assert_eq!(node.text(2).await, "hello");
}

#[tokio::test]
async fn a_task_that_fails_says_so_and_gives_a_stock_server_its_slot_back() {
    let (server, backend, worker) = with_lender().await;
    let mut node = server.node().await;
    backend.then(out_of_memory());
    node.task(1, "fails").await;
    assert_eq!(node.text(1).await, "[error: the backend answered 500: out of memory]");
    worker.line_with("a task failed: the backend answered 500: out of memory").await;
    node.task(2, "works").await;
    assert_eq!(node.text(2).await, "hello", "on the same connection");
}

#[tokio::test]
async fn a_task_whose_connection_is_cut_reaches_a_stock_server_to_its_last_word() {
    let (server, backend, _worker) = with_lender().await;
    let mut node = server.node().await;
    let gate = Gate::closed();
    backend.then(stream(&["one", ", two", ", three"], &gate));
    node.task(1, "count").await;
    gate.open(1);
    assert_eq!(node.answer().await, piece(1, "one"));
    node.vanish().await;
    gate.open(4);
    let mut again = server.node().await;
    assert_eq!(again.name, node.name);
    assert_eq!(again.text(1).await, ", two, three");
    assert_eq!(backend.counts(), Counts { started: 1, answered: 1, aborted: 0 });
    again.task(2, "next").await;
    assert_eq!(again.text(2).await, "hello");
}

#[tokio::test]
async fn a_server_that_comes_back_is_served_again() {
    let (server, _backend, _worker) = with_lender().await;
    let first = server.node().await;
    let address = server.address();
    first.vanish().await;
    server.stop().await;
    let server = NodeServer::start_at(address, NODE_TOKEN).await;
    let mut node = server.node().await;
    node.task(1, "hi").await;
    assert_eq!(node.text(1).await, "hello");
}

#[tokio::test]
async fn a_wrong_token_is_said_and_not_shown() {
    let (server, backend) = (NodeServer::start("another").await, chat_only().await);
    let mut worker = lend_as_node(&server.url(), NODE_TOKEN, &backend);
    worker.line_with("the server refused the token: Invalid token").await;
    assert!(worker.check_running(), "it goes on trying");
    assert!(!worker.log().contains(NODE_TOKEN), "{}", worker.log());
}

#[tokio::test]
async fn a_node_without_a_token_is_a_wrong_use() {
    let args = ["worker", "--protocol", "node", "--server", "ws://127.0.0.1:1", "--demo"];
    let mut worker = ChildProcess::start("lender", binary(), &args);
    assert_eq!(worker.exit().await, Some(2));
    worker.line_with("the server's node token is needed").await;
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_finishes_its_task() {
    let (server, backend, mut worker) = with_lender().await;
    let mut node = server.node().await;
    let gate = Gate::closed();
    backend.then(stream(&["a", "b"], &gate));
    node.task(1, "last").await;
    gate.open(1);
    assert_eq!(node.answer().await, piece(1, "a"));
    worker.sigterm();
    gate.open(3);
    assert_eq!(node.text(1).await, "b");
    assert_eq!(node.answer().await, NodeMessage::Closed(Some((1000, "goodbye".to_owned()))));
    assert_eq!(worker.exit().await, Some(0));
}

/// The text of a streamed chat completion.
fn streamed_text(body: &str) -> String {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

#[tokio::test]
async fn warren_serves_its_consumers_from_warrens_node() {
    let (daemon, backend, _worker) = with_warren().await;
    daemon.has_workers(1).await;
    backend.answer_with(|_| stream(&["gr\u{fc}n", " \u{1f40d}"], &Gate::opened()));
    let client = daemon.client();
    let whole = client.post_json(CHAT, &ask(false)).await;
    assert_eq!(whole.json()["choices"][0]["message"]["content"], "gr\u{fc}n \u{1f40d}");
    let streamed = client.post_json(CHAT, &ask(true)).await.text();
    assert_eq!(streamed_text(&streamed), "gr\u{fc}n \u{1f40d}");
    let message = client.post_json(MESSAGES, &ask(false)).await;
    assert_eq!(message.json()["content"][0]["text"], "gr\u{fc}n \u{1f40d}", "{}", message.text());
    assert_eq!(backend.counts(), Counts { started: 3, answered: 3, aborted: 0 });
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_warren_stops_the_backend_behind_the_node() {
    let (daemon, backend, _worker) = with_warren().await;
    daemon.has_workers(1).await;
    let gate = Gate::closed();
    backend.then(stream(&["a", "b"], &gate));
    let client: Client = daemon.client();
    gate.open(1);
    let mut answer = client.post(CHAT, &ask(true)).start().await;
    assert!(answer.next_chunk().await.is_some());
    drop(answer);
    backend.aborted(1).await;
    daemon.is_idle().await;
    let next = client.post_json(CHAT, &ask(false)).await;
    assert_eq!(next.json()["choices"][0]["message"]["content"], "hello", "the connection stayed");
}

#[tokio::test]
async fn a_task_that_fails_behind_warren_is_tried_again_when_the_node_is_back() {
    let (daemon, backend, _worker) = with_warren().await;
    daemon.has_workers(1).await;
    backend.then(out_of_memory());
    let answer = post(&daemon.client(), CHAT, ask(false)).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(backend.counts().answered, 2);
}

#[tokio::test]
async fn a_node_comes_back_to_a_warren_that_was_restarted() {
    let (mut daemon, backend) = (with_nodes().await, chat_only().await);
    let _worker = lend_as_node(&daemon.url(), NODE_TOKEN, &backend);
    daemon.has_workers(1).await;
    daemon.kill_and_restart().await;
    daemon.has_workers(1).await;
    let answer = daemon.client().post_json(CHAT, &ask(false)).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "hello");
}
