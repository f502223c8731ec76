//! Clients of every API against a backend that has Chat Completions only.

use serde_json::json;
use testkit::{Daemon, MockBackend, WorkerProcess};

use crate::common::{CHAT, MESSAGES, RESPONSES, ask, binary, lend, serve};

async fn chat_only() -> (Daemon, MockBackend, WorkerProcess) {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    let worker = lend(&daemon, &backend, 2).await;
    (daemon, backend, worker)
}

#[tokio::test]
async fn a_plain_answer_has_the_clients_form() {
    let (daemon, backend, _worker) = chat_only().await;
    let message = daemon.client().post_json(MESSAGES, &ask(false)).await;
    assert_eq!(
        (message.status, message.json()["content"][0]["text"].as_str()),
        (200, Some("hello"))
    );
    assert_eq!(message.json()["usage"]["output_tokens"], 2);
    assert_eq!(message.header("request-id"), message.header("x-request-id"));
    let response =
        daemon.client().post_json(RESPONSES, &json!({"model": "m", "input": "hi"})).await;
    assert_eq!(response.json()["output"][0]["content"][0]["text"], "hello", "{}", response.text());
    let completion = json!({"model": "m", "prompt": "hi"});
    let completion = daemon.client().post_json("/v1/completions", &completion).await;
    assert_eq!(completion.json()["choices"][0]["text"], "hello", "{}", completion.text());
    for _ in 0..3 {
        let asked = backend.request().await;
        assert_eq!((&*asked.target, &asked.json()["messages"][0]["content"]), (CHAT, &json!("hi")));
    }
}

/// A backend whose own Responses API misleads clients can do without it.
#[tokio::test]
async fn an_endpoint_that_is_not_named_is_translated_although_the_backend_has_it() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let args = ["--models", "m", "--endpoints", "/v1/chat/completions,/v1/embeddings"];
    let _worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "lender", &args);
    daemon.has_workers(1).await;
    let body = json!({"model": "m", "input": "hi"});
    let response = daemon.client().post_json(RESPONSES, &body).await;
    assert_eq!(response.json()["output"][0]["content"][0]["text"], "hello", "{}", response.text());
    assert_eq!(backend.request().await.target, CHAT);
    let message = daemon.client().post_json(MESSAGES, &ask(false)).await;
    assert_eq!(message.json()["content"][0]["text"], "hello", "{}", message.text());
    assert_eq!(backend.request().await.target, CHAT);
}
