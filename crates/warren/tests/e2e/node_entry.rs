//! Model nodes: how they come in, and who does not.

use serde_json::{Value, json};
use testkit::{Daemon, FakeNode, Knock, Refused, Streaming};

use crate::common::{CHAT, ask, post, serve};

/// The token that lets nodes in here. Nothing of it may be seen anywhere.
pub(crate) const NODE_TOKEN: &str = "n0de-s3cret";

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

async fn refused(knock: Knock) -> Option<(u16, String)> {
    knock.open().await.expect_close().await
}

fn closed(code: u16, reason: &str) -> Option<(u16, String)> {
    Some((code, reason.to_owned()))
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
async fn a_missing_field_is_named_in_the_stock_words() {
    let daemon = with_nodes().await;
    let missing = closed(4001, "Missing token, model, max_concurrency, or name");
    for query in [
        "token=n0de-s3cret",
        "model=m&name=x",
        "max_concurrency=1&model=m&name=x",
        "token=n0de-s3cret&model=m&max_concurrency=1",
        "token=n0de-s3cret&model=&max_concurrency=1&name=x",
    ] {
        assert_eq!(refused(knock(&daemon).query(query)).await, missing, "{query}");
    }
}

#[tokio::test]
async fn an_absurd_concurrency_is_told() {
    let daemon = with_nodes().await;
    let words = "max_concurrency must be a whole number from 1 to 10000";
    for absurd in ["0", "-1", "10001", "1e9", "lots", "184467440737095516160"] {
        let query = format!("token=n0de-s3cret&model=m&max_concurrency={absurd}&name=x");
        assert_eq!(refused(knock(&daemon).query(&query)).await, closed(4001, words), "{absurd}");
    }
    assert!(daemon.workers().await.is_empty());
}

#[tokio::test]
async fn a_wrong_token_is_told_and_no_token_is_ever_logged() {
    let daemon = serve().set("--node-token", NODE_TOKEN).set("--log", "trace").start().await;
    let invalid = closed(4002, "Invalid token");
    assert_eq!(refused(knock(&daemon).token("wr0ng-s3cret")).await, invalid);
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
async fn without_a_token_of_its_own_a_server_lets_no_stranger_in() {
    let daemon = serve().start().await;
    assert_eq!(refused(knock(&daemon)).await, closed(4002, "Invalid token"));
}

#[tokio::test]
async fn a_key_for_lending_lets_a_node_in_until_it_is_revoked() {
    let daemon = serve().start().await;
    let key = async |scope: &str| {
        let asked = json!({"name": "node", "scopes": [scope]});
        daemon.admin().post_json("/admin/keys", &asked).await.json()
    };
    let text = |key: &Value| key["key"].as_str().expect("a key").to_owned();
    let consumer = key("inference").await;
    assert_eq!(
        refused(knock(&daemon).token(&text(&consumer))).await,
        closed(4002, "Invalid token")
    );
    let lender = key("worker").await;
    let mut node = knock(&daemon).token(&text(&lender)).open().await;
    daemon.has_workers(1).await;
    let path = format!("/admin/keys/{}", lender["id"].as_str().expect("an id"));
    assert_eq!(daemon.admin().request("DELETE", &path).send().await.status, 200);
    assert_eq!(node.expect_close().await, closed(4002, "Invalid token"));
    daemon.has_workers(0).await;
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
async fn a_newer_connection_of_the_same_node_takes_its_place() {
    let daemon = with_nodes().await;
    let mut older = join_node(&daemon, "gpu", 2).await;
    let begun = daemon.client().post(CHAT, &ask(true)).open().await;
    let task = older.expect_task().await;
    older.say(task.id, b"begun").await;
    let mut begun = begun.answer().await;
    hears(&mut begun, "begun").await;
    let unbegun = post(&daemon.client(), CHAT, ask(false));
    older.expect_task().await;
    let mut newer = knock(&daemon).name("gpu").slots(2).open().await;
    assert_eq!(older.expect_close().await, closed(4000, "Bye"));
    let moved = newer.expect_task().await;
    newer.answer(&moved, "answered anew").await;
    assert!(unbegun.await.unwrap().text().contains("answered anew"));
    let rest = begun.finish().await.text();
    assert!(rest.contains("\"error\"") && !rest.contains("[DONE]"), "{rest}");
    daemon.has_workers(1).await;
    let _other = join_node(&daemon, "gpu-2", 1).await;
}
