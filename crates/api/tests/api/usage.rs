//! Usage is asked of backends, and shown only to the clients that ask for it themselves; `POST /v1/messages/count_tokens`.

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use scheduler::Head;
use serde_json::{Value, json};

use crate::kit::{Kit, head, next, sent, text};

const WORD: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// The answer to a client that posts this, from a stream that reports usage.
async fn streamed(path: &str, body: &str) -> (Value, String) {
    let mut kit = Kit::new();
    let (response, mut assignment) = kit.post(path, body).await;
    let request = sent(&assignment);
    for event in [WORD, STOP, USAGE, DONE] {
        assignment.answer.chunk(Bytes::from_static(event.as_bytes())).unwrap();
    }
    assignment.answer.end();
    (request, text(response).await)
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_asked_for_usage_that_its_client_does_not_see() {
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let body = r#"{"model":"m","stream":true,"stream_options":{"x":1}}"#;
        let (request, stream) = streamed(path, body).await;
        assert_eq!(request["stream_options"]["include_usage"], true);
        assert_eq!(request["stream_options"]["x"], 1, "the client's own options stay");
        assert_eq!(stream, [WORD, STOP, DONE].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_gets_what_it_asked_for() {
    let body = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    let (request, stream) = streamed("/v1/chat/completions", body).await;
    assert_eq!(request, serde_json::from_str::<Value>(body).unwrap());
    assert_eq!(stream, [WORD, STOP, USAGE, DONE].concat());
}

#[tokio::test(start_paused = true)]
async fn a_shape_that_always_reports_usage_is_not_asked_for_it() {
    let cases = [
        ("/v1/chat/completions", r#"{"model":"m"}"#),
        ("/v1/chat/completions", r#"{"model":"m","stream":true,"stream_options":"x"}"#),
        ("/v1/responses", r#"{"model":"m","stream":true,"store":false}"#),
        ("/v1/messages", r#"{"model":"m","stream":true}"#),
        ("/v1/embeddings", r#"{"model":"m","input":"x"}"#),
    ];
    for (path, body) in cases {
        let mut kit = Kit::new();
        let (_response, assignment) = kit.post(path, body).await;
        assert_eq!(assignment.request.body, body, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_stream_passes_as_it_is() {
    let mut kit = Kit::new();
    let json = head(&[("content-type", "application/json"), ("content-length", "29")]);
    let body = r#"{"model":"m","stream":true}"#;
    let (response, mut assignment) = kit.post_for("/v1/chat/completions", body, json).await;
    let refusal = r#"{"choices":[],"usage":{"x":1}}"#;
    assert_eq!(response.headers()["content-length"], "29");
    let refusal = &refusal[..29];
    assignment.answer.chunk(Bytes::from_static(refusal.as_bytes())).unwrap();
    assignment.answer.end();
    assert_eq!(text(response).await, refusal);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_in_the_usage_ends_with_the_error_alone() {
    let mut kit = Kit::new();
    let (response, mut assignment) =
        kit.post("/v1/chat/completions", r#"{"model":"m","stream":true}"#).await;
    assignment.answer.chunk(Bytes::from_static(STOP.as_bytes())).unwrap();
    assignment.answer.chunk(Bytes::from_static(&USAGE.as_bytes()[..20])).unwrap();
    kit.lose_provider();
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), STOP);
    let error = next(&mut body).await.unwrap().unwrap();
    assert!(error.starts_with(b"data: {\"error\":{"), "{error:?}");
    assert!(next(&mut body).await.is_none());
}

const COUNT: &str = "/v1/messages/count_tokens";
const PROMPT: &str =
    r#"{"model":"m","messages":[{"role":"user","content":"how many are these?"}]}"#;

async fn counted(response: Response<Body>) -> (bool, Value) {
    let estimated =
        response.headers().get("x-warren-usage").is_some_and(|value| value == "estimated");
    (estimated, serde_json::from_str(&text(response).await).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_counts_is_asked() {
    let mut kit = Kit::new();
    let json = head(&[("content-type", "application/json")]);
    let (response, mut assignment) = kit.post_for(COUNT, PROMPT, json).await;
    assert_eq!(
        (assignment.endpoint, &*assignment.request.body),
        (Endpoint::CountTokens, PROMPT.as_bytes())
    );
    assignment.answer.chunk(Bytes::from_static(br#"{"input_tokens":5}"#)).unwrap();
    assignment.answer.end();
    assert_eq!(counted(response).await, (false, json!({"input_tokens": 5})));
}

#[tokio::test(start_paused = true)]
async fn an_estimate_is_marked_as_one_where_nobody_counts() {
    let mut kit = Kit::new();
    let missing = Head { status: StatusCode::NOT_FOUND, ..head(&[]) };
    let (response, _assignment) = kit.post_for(COUNT, PROMPT, missing).await;
    let (estimated, first) = counted(response).await;
    assert!(estimated && first["input_tokens"].as_u64().unwrap() > 3, "{first}");
    kit.serves(&["m"], &[Endpoint::ChatCompletions]);
    let request = || Request::post(COUNT).body(Body::from(PROMPT)).unwrap();
    assert_eq!(counted(kit.send(request()).await).await, (true, first.clone()));
    kit.lose_provider();
    assert_eq!(counted(kit.send(request()).await).await, (true, first), "no model is needed");
}

#[tokio::test(start_paused = true)]
async fn a_bad_request_is_refused_in_the_apis_shape() {
    let mut kit = Kit::new();
    kit.lose_provider();
    for bad in [r#"{"model":"m"}"#, r#"{"messages":[]}"#] {
        let response = kit.send(Request::post(COUNT).body(Body::from(bad)).unwrap()).await;
        assert_eq!(response.status(), 400, "{bad}");
        let error: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(error["error"]["type"], "invalid_request_error");
    }
}
