//! Responses with state, over restarts and the ends of servers; and requests that come compressed.

use serde_json::{Value, json};
use testkit::{DEADLINE, Daemon, MockBackend, Reply, Serve, WorkerProcess, eventually};

use crate::common::{CHAT, RESPONSES, ask, lend, serve};

async fn chat_only(serve: Serve) -> (Daemon, MockBackend, WorkerProcess) {
    let daemon = serve.start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    let worker = lend(&daemon, &backend, 2).await;
    (daemon, backend, worker)
}

async fn make(daemon: &Daemon, body: &Value) -> Value {
    let made = daemon.client().post_json(RESPONSES, body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    made.json()
}

async fn show(daemon: &Daemon, response: &Value) -> Value {
    let path = format!("{RESPONSES}/{}", response["id"].as_str().unwrap());
    daemon.client().get(&path).await.json()
}

/// Waits until a response has this status.
async fn becomes(daemon: &Daemon, response: &Value, status: &str) -> Value {
    let has = async || show(daemon, response).await["status"] == status;
    eventually("the response's status", DEADLINE, has).await;
    show(daemon, response).await
}

fn in_background() -> Value {
    json!({"model": "m", "input": "hi", "background": true})
}

#[tokio::test]
async fn a_response_is_continued_after_a_restart() {
    let (mut daemon, backend, _worker) = chat_only(serve()).await;
    let one = make(&daemon, &json!({"model": "m", "input": "hi", "store": true})).await;
    assert_eq!(one["store"], true);
    backend.request().await;
    daemon.stop_and_restart().await;
    daemon.has_workers(1).await;
    assert_eq!(show(&daemon, &one).await, one);
    let more = json!({"model": "m", "input": "more", "previous_response_id": one["id"]});
    make(&daemon, &more).await;
    let asked = backend.request().await.json();
    let messages = asked["messages"].as_array().unwrap();
    let texts: Vec<_> = messages.iter().map(|message| &message["content"]).collect();
    assert_eq!(texts, ["hi", "hello", "more"]);
}

#[tokio::test]
async fn a_response_of_a_server_that_was_killed_has_failed() {
    let (mut daemon, backend, _worker) = chat_only(serve()).await;
    backend.then(Reply::hang());
    let queued = make(&daemon, &in_background()).await;
    assert_eq!(queued["status"], "queued");
    backend.request().await;
    daemon.kill_and_restart().await;
    let lost = show(&daemon, &queued).await;
    assert_eq!((&lost["status"], &lost["id"]), (&json!("failed"), &queued["id"]), "{lost}");
    assert!(lost["error"]["message"].as_str().unwrap().contains("has stopped"), "{lost}");
}

#[tokio::test]
async fn a_response_that_a_stop_ends_has_failed_and_one_that_is_quick_has_not() {
    let serve = serve().set("--drain-timeout-secs", "1");
    let (mut daemon, backend, _worker) = chat_only(serve).await;
    backend.then(Reply::hang());
    let slow = make(&daemon, &in_background()).await;
    backend.request().await;
    let quick = make(&daemon, &in_background()).await;
    becomes(&daemon, &quick, "completed").await;
    daemon.stop_and_restart().await;
    let ended = show(&daemon, &slow).await;
    assert_eq!(
        (&ended["status"], &ended["error"]["code"]),
        (&json!("failed"), &json!("shutting_down"))
    );
    assert_eq!(show(&daemon, &quick).await["output"][0]["content"][0]["text"], "hello");
}

#[tokio::test]
async fn a_response_in_the_background_is_a_request_of_the_ledger() {
    let (daemon, backend, _worker) = chat_only(serve()).await;
    let made = make(&daemon, &in_background()).await;
    becomes(&daemon, &made, "completed").await;
    backend.then(Reply::hang());
    let left = make(&daemon, &in_background()).await;
    becomes(&daemon, &left, "in_progress").await;
    let cancel = format!("{RESPONSES}/{}/cancel", left["id"].as_str().unwrap());
    assert_eq!(daemon.client().post_json(&cancel, &json!({})).await.json()["status"], "cancelled");
    backend.aborted(1).await;
    let written = async || {
        let usage = daemon.admin().get("/admin/usage").await.json();
        usage["totals"]["requests"] == 2
    };
    eventually("both rows of the ledger", DEADLINE, written).await;
}

/// `zstd` data of these blocks, each with its kind (0: as it is, 1: one byte again and again) and length.
fn zstd(blocks: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut packed = b"\x28\xb5\x2f\xfd\x00\x50".to_vec();
    for (at, (kind, length, bytes)) in blocks.iter().enumerate() {
        let is_last = u32::from(at + 1 == blocks.len());
        packed.extend_from_slice(&(is_last | kind << 1 | length << 3).to_le_bytes()[..3]);
        packed.extend_from_slice(bytes);
    }
    packed
}

#[tokio::test]
async fn a_compressed_request_is_unpacked_and_a_bomb_is_not() {
    let (daemon, backend, _worker) = chat_only(serve().set("--max-body-mib", "1")).await;
    let send = async |coding: &str, body: Vec<u8>| {
        let request = daemon.client().request("POST", CHAT);
        let request = request.header("content-type", "application/json");
        request.header("content-encoding", coding).body(body).send().await
    };
    let plain = ask(false).to_string();
    let packed = zstd(&[(0, u32::try_from(plain.len()).unwrap(), plain.as_bytes())]);
    assert_eq!(send("zstd", packed.clone()).await.status, 200);
    let asked = backend.request().await;
    assert_eq!(
        (asked.json()["model"].as_str(), asked.header("content-encoding")),
        (Some("m"), None)
    );
    let bomb = zstd(&vec![(1, 128 * 1024, &b" "[..]); 8192]);
    let refused = send("zstd", bomb).await;
    assert_eq!(
        (refused.status, &refused.json()["error"]["type"]),
        (413, &json!("invalid_request_error"))
    );
    let cut = send("zstd", packed[..packed.len() - 3].to_vec()).await;
    assert_eq!(cut.status, 400);
    assert!(cut.text().contains("cut off"), "{}", cut.text());
    for coding in ["zstd, gzip", "deflate"] {
        let unknown = send(coding, packed.clone()).await;
        assert_eq!(unknown.status, 415);
        assert_eq!(unknown.header("accept-encoding"), Some("zstd, br, gzip"));
        assert_eq!(unknown.json()["error"]["code"], "unsupported_content_encoding");
    }
}
