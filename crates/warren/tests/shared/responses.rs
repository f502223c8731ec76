//! Responses with state, at several servers.

use serde_json::{Value, json};
use testkit::{DEADLINE, Daemon, FakeWorker, Job, Streaming, eventually, postgres::PostgresServer};

use crate::servers::{answers, make_key, two, worker};

const RESPONSES: &str = "/v1/responses";

/// Asks with a key, and has a worker given the job.
async fn asked(
    daemon: &Daemon,
    worker: &mut FakeWorker,
    key: &str,
    body: &Value,
) -> (Streaming, Job) {
    let asked = daemon.client().with_token(key).post(RESPONSES, body).open().await;
    let job = worker.expect_job().await;
    worker
        .complete(
            &job,
            200,
            &json!({"id": "p", "object": "response", "status": "completed",
        "output": [{"id": "msg_1", "type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "hello"}]}]}),
        )
        .await;
    (asked.answer().await, job)
}

#[tokio::test]
async fn a_response_of_one_server_is_continued_at_the_other_and_only_by_its_key() {
    let (one, other) = two(PostgresServer::shared()).await;
    let ((_, key), (_, stranger)) = (make_key(&one).await, make_key(&one).await);
    answers(&other, &key, 200).await;
    answers(&other, &stranger, 200).await;
    let (mut here, mut there) = (worker(&one).await, worker(&other).await);
    let first = json!({"model": "m", "input": "hi", "store": true});
    let (answer, _) = asked(&one, &mut here, &key, &first).await;
    let made = answer.finish().await.json();
    let more = json!({"model": "m", "input": "more", "previous_response_id": made["id"]});
    let refused = other.client().with_token(&stranger).post_json(RESPONSES, &more).await;
    assert_eq!(refused.json()["error"]["code"], "previous_response_not_found");
    let (answer, job) = asked(&other, &mut there, &key, &more).await;
    let sent: Value = serde_json::from_slice(&job.body).unwrap();
    assert_eq!(sent["input"].as_array().unwrap().len(), 3, "{sent}");
    assert_eq!(answer.finish().await.status, 200);
}

#[tokio::test]
async fn a_response_that_one_server_makes_is_cancelled_at_the_other() {
    let (one, other) = two(PostgresServer::shared()).await;
    let (_, key) = make_key(&one).await;
    answers(&other, &key, 200).await;
    let mut here = worker(&one).await;
    let body = json!({"model": "m", "input": "hi", "background": true});
    let queued = one.client().with_token(&key).post_json(RESPONSES, &body).await.json();
    here.expect_job().await;
    let path = format!("{RESPONSES}/{}", queued["id"].as_str().unwrap());
    let cancelled =
        other.client().with_token(&key).post_json(&format!("{path}/cancel"), &json!({})).await;
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text());
    here.expect_cancel().await;
    let is_cancelled =
        async || one.client().with_token(&key).get(&path).await.json()["status"] == "cancelled";
    eventually("the response's status", DEADLINE, is_cancelled).await;
}
