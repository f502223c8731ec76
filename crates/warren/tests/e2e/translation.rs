//! Clients of every API against a backend that has Chat Completions only.

use serde_json::{Value, json};
use testkit::{Daemon, Gate, MockBackend, Reply, WorkerProcess};

use crate::common::{CHAT, MESSAGES, RESPONSES, ask, binary, lend, serve};

/// A chat completion in pieces, one event a chunk.
const CHUNKS: [&str; 5] = [
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
];

async fn chat_only() -> (Daemon, MockBackend, WorkerProcess) {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    let worker = lend(&daemon, &backend, 2).await;
    (daemon, backend, worker)
}

/// The data of a stream's events.
fn data(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
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

#[tokio::test]
async fn streams_have_the_events_of_the_clients_api() {
    let (daemon, backend, _worker) = chat_only().await;
    backend.then(Reply::stream(CHUNKS, &Gate::opened()));
    let stream = daemon.client().post_json(MESSAGES, &ask(true)).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let events = data(&stream.text());
    assert_eq!(
        types(&events),
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ],
        "{}",
        stream.text()
    );
    assert_eq!(events[5]["usage"]["output_tokens"], 2);
    backend.then(Reply::stream(CHUNKS, &Gate::opened()));
    let body = json!({"model": "m", "input": "hi", "stream": true});
    let stream = daemon.client().post_json(RESPONSES, &body).await;
    let events = data(&stream.text());
    let types = types(&events);
    assert_eq!((types[0], types[types.len() - 1]), ("response.created", "response.completed"));
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
