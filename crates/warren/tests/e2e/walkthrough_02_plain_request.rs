//! Walkthrough 2: a request without a stream.

use serde_json::json;
use testkit::{Form, Reply};

use crate::common::{CHAT, both_forms, with_lender, with_worker};

both_forms!(the_request_and_its_answer_pass_unchanged,);

async fn the_request_and_its_answer_pass_unchanged(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    // Odd spacing, an escape and a field nobody knows: all of it must arrive as it is.
    let body = r#"{ "model":"m",  "messages":[{"content":"\u00e9 é"}],"x_new":1e400 }"#;
    let request = daemon.client().request("POST", CHAT).header("content-type", "application/json");
    let answer = tokio::spawn(request.body(body).send());
    let job = worker.expect_job().await;
    assert_eq!((job.model.as_str(), job.path.as_str(), job.streaming), ("m", CHAT, false));
    assert_eq!(job.body, body);
    assert_eq!(job.header("content-type"), Some("application/json"));
    let headers = [("content-type", "application/json"), ("x-back", "1")];
    let said = r#"{"choices":[],  "usage":{"prompt_tokens":42,"completion_tokens":128}}"#;
    worker.complete_with(&job, 200, &headers, said).await;
    let answer = answer.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, said));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-back"), Some("1"));
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_real_worker_asks_its_backend() {
    let (daemon, backend, _worker) = with_lender(1).await;
    let body = r#"{"model":"m", "messages":[] , "x_new":"é"}"#;
    backend.then(Reply::full(201, &[("content-type", "application/json"), ("x-back", "1")], "{ }"));
    let path = "/v1/chat/completions?api-version=2&x=%20";
    let request = daemon.client().request("POST", path).header("content-type", "application/json");
    let answer = request.body(body).send().await;
    assert_eq!((answer.status, answer.text().as_str()), (201, "{ }"));
    assert_eq!(answer.header("x-back"), Some("1"));
    let got = backend.request().await;
    assert_eq!((got.target.as_str(), &got.body[..]), (path, body.as_bytes()));
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_real_worker_carries_bodies_that_are_large_or_no_text() {
    let (daemon, backend, _worker) = with_lender(1).await;
    let text = "x".repeat(10 * 1024 * 1024);
    let body = json!({"model": "m", "input": text});
    let answered: Vec<u8> = (0..3 * 1024 * 1024u32).map(|byte| byte as u8).collect();
    backend.then(Reply::full(200, &[("content-type", "audio/wav")], &answered));
    let answer = daemon.client().post_json("/v1/embeddings", &body).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body == answered, "the answer's bytes have changed");
    assert!(backend.request().await.json() == body, "the request's bytes have changed");
}

#[tokio::test]
async fn one_connection_serves_one_request_after_another() {
    let (daemon, _backend, _worker) = with_lender(1).await;
    let request = daemon.client().post(CHAT, &json!({"model": "m"}));
    let mut connection = daemon.client().connect().await;
    for _ in 0..3 {
        connection.send(&request).await;
        let (answer, kept) = connection.answer().await.finish_and_keep().await;
        assert_eq!(answer.status, 200);
        connection = kept;
    }
}
