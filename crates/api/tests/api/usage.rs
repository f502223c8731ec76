//! Usage is asked of backends, and shown to those clients only that ask for it themselves.

use bytes::Bytes;
use serde_json::Value;

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
    let asked = sent(&assignment);
    for event in [WORD, STOP, USAGE, DONE] {
        assignment.answer.chunk(Bytes::from_static(event.as_bytes())).unwrap();
    }
    assignment.answer.end();
    (asked, text(response).await)
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_asked_for_usage_that_its_client_does_not_see() {
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let body = r#"{"model":"m","stream":true,"stream_options":{"x":1}}"#;
        let (asked, stream) = streamed(path, body).await;
        assert_eq!(asked["stream_options"]["include_usage"], true);
        assert_eq!(asked["stream_options"]["x"], 1, "the client's own options stay");
        assert_eq!(stream, [WORD, STOP, DONE].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_gets_what_it_asked_for() {
    let body = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    let (asked, stream) = streamed("/v1/chat/completions", body).await;
    assert_eq!(asked, serde_json::from_str::<Value>(body).unwrap());
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
