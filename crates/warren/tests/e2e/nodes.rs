//! Model nodes at the real binary: how they come in, who they serve, and our own worker as one.
//!
//! What a node may send and what becomes of its text is tested in `providers`, what our worker does as
//! a node in `worker`.

use serde_json::{Value, json};
use testkit::{
    ChildProcess, Counts, DEADLINE, Daemon, FakeNode, Gate, Knock, MockBackend, Refused, Reply,
    Streaming,
    chat::{delta, said},
    eventually,
};

use crate::common::{CHAT, MESSAGES, RESPONSES, ask, assert_fields, binary, post, serve};

/// The token of nodes here. Nothing of it may be seen anywhere.
pub(crate) const NODE_TOKEN: &str = "n0de-s3cret";

const TEXT: &str = "Héllo from a bare node, in pieces 💡.";

/// A server that takes nodes.
pub(crate) async fn with_nodes() -> Daemon {
    serve().set("--node-token", NODE_TOKEN).start().await
}

/// A node of the model `m` that the server has let in.
pub(crate) async fn join_node(daemon: &Daemon, name: &str, slots: u32) -> FakeNode {
    let before = daemon.workers().await.len();
    let node = knock(daemon).name(name).slots(slots).open().await;
    daemon.has_workers(before + 1).await;
    node
}

/// Such a server, and a node of one slot at it.
pub(crate) async fn with_node() -> (Daemon, FakeNode) {
    let daemon = with_nodes().await;
    let node = join_node(&daemon, "gpu", 1).await;
    (daemon, node)
}

pub(crate) fn knock(daemon: &Daemon) -> Knock {
    Knock::new(daemon.address()).token(NODE_TOKEN)
}

/// Reads a stream until it has said this; what was read.
pub(crate) async fn hears(answer: &mut Streaming, text: &str) -> String {
    let mut heard = String::new();
    while !heard.contains(text) {
        let chunk = answer.next_chunk().await.expect("the stream goes on");
        heard.push_str(str::from_utf8(&chunk).expect("whole characters"));
    }
    heard
}

#[tokio::test]
async fn a_node_is_let_in_on_any_path_and_listed_like_any_worker() {
    let daemon = with_nodes().await;
    let mut nodes = Vec::new();
    for (at, path) in ["/ws", "/", "/v1/models", "/no/such/path"].into_iter().enumerate() {
        nodes.push(knock(&daemon).path(path).name(&format!("gpu-{at}")).slots(3).open().await);
    }
    daemon.has_workers(4).await;
    let workers = daemon.workers().await;
    assert_eq!(workers[0]["worker_name"], "gpu-0", "{workers:?}");
    assert_eq!(workers[0]["models"], json!(["m"]), "{workers:?}");
    assert_eq!(workers[0]["max_concurrent"], 3, "{workers:?}");
    let models = daemon.client().get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "m", "{models}");
    let metrics = daemon.metrics().await;
    assert!(metrics.contains("gpu-3"), "{metrics}");
}

#[tokio::test]
async fn a_wrong_token_is_told_and_no_token_is_ever_logged() {
    let daemon = serve().set("--node-token", NODE_TOKEN).set("--log", "trace").start().await;
    let invalid = Some((4002, "Invalid token".to_owned()));
    let mut stranger = knock(&daemon).token("wr0ng-s3cret").open().await;
    assert_eq!(stranger.expect_close().await, invalid);
    daemon.line_with("a node was turned away").await;
    let mut node = join_node(&daemon, "gpu", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    node.answer(&task, "Hello").await;
    assert_eq!(answer.await.unwrap().status, 200);
    drop(node);
    daemon.line_with("node disconnected").await;
    let log = daemon.log();
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn other_requests_are_not_taken_for_nodes() {
    let daemon = with_nodes().await;
    let whole = "token=n0de-s3cret&model=m&max_concurrency=1&name=x";
    let listed = daemon.client().get(&format!("/v1/models?{whole}")).await;
    assert_eq!((listed.status, &listed.json()["object"]), (200, &json!("list")));
    let plain = daemon.client().get(&format!("/ws?{whole}")).await;
    assert_eq!((plain.status, plain.header("upgrade")), (426, Some("websocket")));
    let status = async |knock: Knock| match knock.try_open().await {
        Ok(_) => 101,
        Err(Refused { status, .. }) => status,
    };
    let three = knock(&daemon).path("/v1/models").query("token=n0de-s3cret&model=m&name=x");
    assert_eq!(status(three).await, 200, "only all four make a node elsewhere");
    // `node` alone is a node of the mesh at the relay, and nothing a client of the workspace.
    for other in ["node=abcdef", ""] {
        assert_eq!(status(knock(&daemon).query(other)).await, 101, "{other}");
    }
    assert!(daemon.workers().await.is_empty());
}

#[tokio::test]
async fn stock_consumers_are_served_by_stock_nodes() {
    let (daemon, mut node) = with_node().await;
    let asked = json!({
        "model": "m", "system": "Be brief.", "temperature": 3, "max_new_tokens": 12,
        "messages": [{"role": "user", "content": "Hi"}],
    });
    let answer = post(&daemon.client(), "/api/chat", asked);
    let task = node.expect_task().await;
    assert_eq!(
        (&task.json["system"], &task.json["max_new_tokens"]),
        (&json!("Be brief."), &json!(12))
    );
    assert_eq!(task.json["temperature"], 0.0, "out of range, as stock servers have it");
    node.answer(&task, TEXT).await;
    let answer = answer.await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let lines: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text: String = lines.iter().filter_map(|line| line["o"].as_str()).collect();
    assert_eq!((&*text, lines.last()), (TEXT, Some(&json!({"done": true}))));
    let asked = json!({"model": "m", "messages": ["Hi"]});
    let left = daemon.client().post("/api/chat", &asked).open().await;
    let task = node.expect_task().await;
    left.reset();
    node.expect_stop(task.id).await;
}

#[tokio::test]
async fn the_ledger_has_a_nodes_tokens_as_estimates_also_of_a_client_that_left() {
    let (daemon, mut node) = with_node().await;
    let whole = post(&daemon.client(), CHAT, ask(false));
    let task = node.expect_task().await;
    node.answer(&task, "sixteen letters!").await;
    assert_eq!(whole.await.unwrap().status, 200);
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let task = node.expect_task().await;
    node.say(task.id, b"four letters").await;
    let mut answer = asked.answer().await;
    hears(&mut answer, "four letters").await;
    answer.reset();
    node.expect_stop(task.id).await;
    let counted = async || {
        let usage = daemon.admin().get("/admin/usage?by=provider").await.json();
        let row = &usage["rows"][0];
        row["provider"] == "gpu"
            && (&row["requests"], &row["estimated"]) == (&json!(2), &json!(2))
            && row["completion_tokens"] == 4 + 3
    };
    eventually("both answers in the ledger", DEADLINE, counted).await;
}

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

/// A streamed chat completion of these pieces.
fn stream(pieces: &[&str], gate: &Gate) -> Reply {
    let done = "data: [DONE]\n\n".to_owned();
    Reply::stream(pieces.iter().map(|piece| delta(piece)).chain([done]), gate)
}

#[tokio::test]
async fn a_node_without_a_token_is_a_wrong_use() {
    let args = ["worker", "--protocol", "node", "--server", "ws://127.0.0.1:1", "--demo"];
    let mut worker = ChildProcess::start("lender", binary(), &args);
    assert_eq!(worker.exit().await, Some(2));
    worker.line_with("the server's node token is needed").await;
}

#[tokio::test]
async fn warren_serves_its_consumers_from_warrens_node_also_after_a_restart() {
    let (mut daemon, backend) = (with_nodes().await, chat_only().await);
    let _worker = lend_as_node(&daemon.url(), NODE_TOKEN, &backend);
    daemon.has_workers(1).await;
    backend.answer_with(|_| stream(&["gr\u{fc}n", " \u{1f40d}"], &Gate::opened()));
    let client = daemon.client();
    let whole = client.post_json(CHAT, &ask(false)).await;
    assert_eq!(whole.json()["choices"][0]["message"]["content"], "gr\u{fc}n \u{1f40d}");
    let streamed = client.post_json(CHAT, &ask(true)).await.text();
    assert_eq!(said(&streamed), "gr\u{fc}n \u{1f40d}");
    let message = client.post_json(MESSAGES, &ask(false)).await;
    assert_eq!(message.json()["content"][0]["text"], "gr\u{fc}n \u{1f40d}", "{}", message.text());
    let response = client.post_json(RESPONSES, &json!({"model": "m", "input": "Hi"})).await;
    assert_fields(&response.json(), &json!({"object": "response", "status": "completed"}));
    assert_eq!(backend.counts(), Counts { started: 4, answered: 4, aborted: 0 });
    daemon.is_idle().await;
    daemon.kill_and_restart().await;
    daemon.has_workers(1).await;
    let again = daemon.client().post_json(CHAT, &ask(true)).await.text();
    assert_eq!(said(&again), "gr\u{fc}n \u{1f40d}", "the node has come back");
}
