//! Clients of every API against a backend that has Chat Completions only.

use serde_json::{Value, json};
use testkit::{Daemon, Form, Gate, MockBackend, Reply, WorkerProcess};

use crate::common::{
    CHAT, MESSAGES, RESPONSES, ask, binary, both_forms, lend, post, serve, with_worker,
};

both_forms!(
    endpoints_of_a_worker_are_learnt_from_its_answers,
    an_untranslatable_parameter_is_named_and_the_endpoint_is_still_learnt,
);

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

#[tokio::test]
async fn each_event_leaves_as_it_comes_and_a_broken_stream_ends_with_the_clients_error() {
    let (daemon, backend, _worker) = chat_only().await;
    let gate = Gate::closed();
    backend.then(Reply::stream(&CHUNKS[..2], &gate).broken());
    let asked = daemon.client().post(MESSAGES, &ask(true)).open().await;
    gate.open(2);
    let mut answer = asked.answer().await;
    let mut seen = String::new();
    while !seen.contains("hel") {
        let chunk = answer.next_chunk().await.expect("more of the stream");
        seen.push_str(&String::from_utf8_lossy(&chunk));
    }
    gate.open(1);
    let rest = answer.finish().await.text();
    let last = data(&rest).pop().expect("an event");
    assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!("api_error")));
    assert!(!rest.contains("message_stop"), "{rest}");
}

#[tokio::test]
async fn a_client_that_leaves_a_translated_stream_stops_its_backend() {
    let (daemon, backend, _worker) = chat_only().await;
    let gate = Gate::closed();
    backend.then(Reply::stream(CHUNKS, &gate));
    let asked = daemon.client().post(MESSAGES, &ask(true)).open().await;
    gate.open(2);
    let mut answer = asked.answer().await;
    answer.next_chunk().await.expect("the beginning");
    answer.reset();
    backend.aborted(1).await;
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_request_that_cannot_be_translated_never_reaches_the_backend() {
    let (daemon, backend, _worker) = chat_only().await;
    let started = backend.counts().started;
    let body = json!({"model": "m", "input": "hi", "previous_response_id": "resp_1"});
    let refused = daemon.client().post_json(RESPONSES, &body).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["param"], "previous_response_id");
    for kind in ["file_search", "mcp"] {
        let body = json!({"model": "m", "input": "hi", "tools": [{"type": kind}]});
        let refused = daemon.client().post_json(RESPONSES, &body).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]["param"]),
            (400, &json!("tools[0].type"))
        );
        assert!(refused.text().contains(kind), "{}", refused.text());
    }
    let embeddings = json!({"model": "m", "input": "hi"});
    let unserved = daemon.client().post_json("/v1/embeddings", &embeddings).await;
    assert_eq!(
        (unserved.status, &unserved.json()["error"]["code"]),
        (404, &json!("endpoint_not_served"))
    );
    assert_eq!(backend.counts().started, started);
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

/// A plain answer that has no form in the client's API, though its head said that all is well.
#[tokio::test]
async fn a_plain_answer_that_makes_no_sense_is_told_with_its_status() {
    let (daemon, backend, _worker) = chat_only().await;
    let error = json!({"error": {"message": "out of memory"}}).to_string();
    for (body, words) in [("<html>hi</html>", "not understood"), (&*error, "out of memory")] {
        let reply = Reply::full(200, &[("content-type", "application/json")], body);
        backend.then(reply);
        let answer = daemon.client().post_json(MESSAGES, &ask(false)).await;
        assert_eq!((answer.status, &answer.json()["error"]["type"]), (502, &json!("api_error")));
        assert!(answer.text().contains(words), "{}", answer.text());
    }
}

#[tokio::test]
async fn tokens_are_counted_by_whoever_can() {
    let (daemon, _backend, _worker) = chat_only().await;
    let path = "/v1/messages/count_tokens";
    let counted = daemon.client().post_json(path, &ask(false)).await;
    assert_eq!(counted.header("x-warren-usage"), Some("estimated"));
    assert!(counted.json()["input_tokens"].as_u64().expect("a count") > 0);
}

/// A worker that does not tell what it serves is asked as the client asked; when the endpoint is
/// not there, it is asked in another shape, and from then on at once.
async fn endpoints_of_a_worker_are_learnt_from_its_answers(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let missing = json!({"error": {"code": 404, "message": "File Not Found"}});
    let completion = json!({
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    });
    for first in [true, false] {
        let asked = post(&daemon.client(), MESSAGES, ask(false));
        if first {
            let job = worker.expect_job().await;
            assert_eq!(job.path, MESSAGES);
            worker.complete(&job, 404, &missing).await;
        }
        let job = worker.expect_job().await;
        assert_eq!(job.path, CHAT);
        worker.complete(&job, 200, &completion).await;
        let answer = asked.await.expect("an answer");
        assert_eq!((answer.status, &answer.json()["content"][0]["text"]), (200, &json!("hello")));
    }
}

/// The worker's own 404 is no answer to a request that is not asked of it in the end: what keeps it
/// from being translated is. From then on it is named before anybody is asked.
async fn an_untranslatable_parameter_is_named_and_the_endpoint_is_still_learnt(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let bad = json!({"model": "m", "input": "hi", "previous_response_id": "resp_1"});
    for first in [true, false] {
        let asked = post(&daemon.client(), RESPONSES, bad.clone());
        if first {
            let job = worker.expect_job().await;
            assert_eq!(job.path, RESPONSES);
            worker.complete(&job, 404, &json!({"detail": "Not Found"})).await;
        }
        let refused = asked.await.expect("an answer");
        let error = &refused.json()["error"];
        assert_eq!((refused.status, &error["type"]), (400, &json!("invalid_request_error")));
        assert!(error["message"].as_str().unwrap().contains("previous_response_id"), "{error}");
    }
    let good = json!({"model": "m", "input": "hi"});
    let _asked = post(&daemon.client(), RESPONSES, good);
    assert_eq!(worker.expect_job().await.path, CHAT, "its slot is free, and it is remembered");
}
