//! Clients of one API, providers of another.

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::{Request, StatusCode};
use scheduler::Head;
use serde_json::{Value, json};

use crate::kit::{Kit, head, sent, text};

const CHAT: Endpoint = Endpoint::ChatCompletions;
const ASK: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// A server whose only provider has Chat Completions.
fn chat_only() -> Kit {
    let kit = Kit::new();
    kit.serves(&["m"], &[CHAT]);
    kit
}

fn json_head() -> Head {
    head(&[("content-type", "application/json"), ("content-length", "9999"), ("x-of-backend", "1")])
}

/// The names of a stream's events, in order.
fn events(stream: &str) -> Vec<&str> {
    stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_messages_client_is_served_by_chat_completions() {
    let mut kit = chat_only();
    let request = Request::post("/v1/messages?beta=true")
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", "x")
        .header("x-stainless-lang", "js")
        .header("x-own", "1")
        .body(Body::from(ASK))
        .unwrap();
    let events_head = head(&[("content-type", "text/event-stream")]);
    let (response, mut assignment) = kit.send_for(request, events_head).await;
    assert_eq!(assignment.endpoint, CHAT);
    assert_eq!(assignment.request.path_and_query, "/v1/chat/completions");
    assert!(assignment.request.streaming);
    let mut names: Vec<&str> =
        assignment.request.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept-encoding", "content-type", "x-own", "x-warren-via"]);
    let body = sent(&assignment);
    assert_eq!((&body["model"], &body["stream"]), (&json!("m"), &json!(true)));
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["request-id"], assignment.job.to_string());
    for data in [
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"hel"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        "[DONE]",
    ] {
        let event = format!("data: {data}\n\n");
        assignment.answer.chunk(Bytes::from(event)).unwrap();
    }
    assignment.answer.end();
    let stream = text(response).await;
    let events = events(&stream);
    assert_eq!(
        (events[0], events[events.len() - 1]),
        ("message_start", "message_stop"),
        "{stream}"
    );
    assert!(stream.contains("hel") && stream.contains("\"output_tokens\":2"), "{stream}");
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_and_an_error_get_the_clients_form() {
    let mut kit = chat_only();
    let plain = ASK.replace("true", "false");
    let answer = json!({
        "id": "c", "object": "chat.completion", "model": "real",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "hello"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    });
    let answered = kit.post_for_all("/v1/messages", &plain, json_head(), answer.to_string());
    let response = answered.await;
    let length: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    assert_eq!(response.headers()["x-of-backend"], "1");
    let message = text(response).await;
    assert_eq!(length, message.len(), "the backend's length was that of other bytes");
    let message: Value = serde_json::from_str(&message).unwrap();
    assert_eq!((&message["type"], &message["model"]), (&json!("message"), &json!("m")));
    assert_eq!(message["content"][0]["text"], "hello");
    let refusal = Head { status: StatusCode::TOO_MANY_REQUESTS, ..json_head() };
    let error = r#"{"error":{"message":"slow down"}}"#;
    let response = kit.post_for_all("/v1/messages", ASK, refusal, error).await;
    assert_eq!(response.status(), 429);
    let error: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(error["type"], "error");
    assert_eq!(error["error"], json!({"type": "rate_limit_error", "message": "slow down"}));
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_without_sense_is_an_error_with_a_status() {
    let mut kit = chat_only();
    let plain = ASK.replace("true", "false");
    for (answer, words) in [
        ("<html>", "not understood"),
        (r#"{"choices":[]}"#, "no choices"),
        (r#"{"error":{"message":"out of memory"}}"#, "out of memory"),
    ] {
        let response = kit.post_for_all("/v1/messages", &plain, json_head(), answer).await;
        assert_eq!(response.status(), 502);
        let error: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(error["error"]["type"], "api_error");
        assert!(error["error"]["message"].as_str().unwrap().contains(words), "{error}");
    }
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn unsupported_fields_are_refused_by_name_before_any_provider_is_asked() {
    let kit = chat_only();
    let body = r#"{"model":"m","input":"hi","previous_response_id":"resp_1"}"#;
    let request = Request::post("/v1/responses").body(Body::from(body)).unwrap();
    let response = kit.send(request).await;
    assert_eq!(response.status(), 400);
    let error: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(error["error"]["param"], "previous_response_id", "{error}");
    assert_eq!(error["error"]["type"], "invalid_request_error");
    for kind in ["file_search", "mcp"] {
        let body = format!(r#"{{"model":"m","input":"hi","tools":[{{"type":"{kind}"}}]}}"#);
        let request = Request::post("/v1/responses").body(Body::from(body)).unwrap();
        let error: Value = serde_json::from_str(&text(kit.send(request).await).await).unwrap();
        assert_eq!(error["error"]["param"], "tools[0].type", "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(kind), "{error}");
    }
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_provider_of_the_clients_shape_gets_the_clients_bytes() {
    let mut kit = Kit::new();
    kit.serves(&["m"], &[CHAT, Endpoint::Messages]);
    let (_response, assignment) = kit.post("/v1/messages?beta=true", ASK).await;
    assert_eq!(assignment.request.path_and_query, "/v1/messages?beta=true");
    assert_eq!(assignment.request.body, ASK);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_moves_to_another_sort_of_provider_is_made_anew() {
    for said in ["hi".to_owned(), "x".repeat(600 * 1024)] {
        let mut kit = Kit::new();
        kit.serves(&["m"], &[Endpoint::Messages]);
        let _other = kit.join(2, &["m"], &[CHAT]);
        let ask = Bytes::from(ASK.replace("hi", &said));
        let request = Request::post("/v1/messages").body(Body::from(ask.clone())).unwrap();
        let response = tokio::spawn(kit.meanwhile(request));
        let native = kit.assigned().await;
        assert_eq!((native.endpoint, &native.request.body), (Endpoint::Messages, &ask));
        native.answer.fail("it is out of memory");
        let mut translated = kit.assigned().await;
        assert_eq!((translated.endpoint, translated.attempt), (CHAT, 1));
        let body = sent(&translated);
        assert_eq!(body["messages"][0]["content"], said);
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
        translated.answer.head(head(&[("content-type", "text/event-stream")])).unwrap();
        let response = response.await.unwrap();
        drop(translated);
        let stream = text(response).await;
        assert!(stream.contains("event: error\ndata: {\"type\":\"error\""), "{stream}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_provider_of_any_shape_is_not_served() {
    let kit = Kit::new();
    kit.serves(&["m"], &[Endpoint::Embeddings]);
    let request = Request::post("/v1/messages").body(Body::from(ASK)).unwrap();
    let response = kit.send(request).await;
    assert_eq!(response.status(), 404);
    assert!(text(response).await.contains("no worker that serves m serves this endpoint"));
    let body = Body::from(r#"{"model":"m","input":"hi"}"#);
    let response = chat_only().send(Request::post("/v1/embeddings").body(body).unwrap()).await;
    assert_eq!(response.status(), 404);
    let error: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(error["error"]["code"], "endpoint_not_served");
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_translated_as_a_small_one_is() {
    let mut kit = chat_only();
    let long = "x".repeat(600 * 1024);
    let (_response, assignment) = kit.post("/v1/messages", &ASK.replace("hi", &long)).await;
    assert_eq!(sent(&assignment)["messages"][0]["content"], long);
}

#[tokio::test(start_paused = true)]
async fn what_came_before_an_unreadable_chunk_reaches_the_client() {
    let good = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
    for pieces in
        [vec![format!("{good}data: {{oops\n\n")], vec![good.into(), "data: {oops\n\n".into()]]
    {
        let mut kit = chat_only();
        let (response, mut assignment) = kit.post("/v1/messages", ASK).await;
        let written: Vec<bool> =
            pieces.into_iter().map(|piece| assignment.answer.chunk(piece.into()).is_ok()).collect();
        assert_eq!(written.last(), Some(&false));
        assignment.answer.fail("it makes no sense");
        let stream = text(response).await;
        assert!(stream.contains("\"text\":\"Hello\""), "{stream}");
        assert_eq!(events(&stream).last(), Some(&"error"), "{stream}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_too_long_is_told_in_the_words_of_the_clients_api() {
    let vllm = r#"{"error":{"message":"This model's maximum context length is 8 tokens. However, your request has 9 input tokens.","type":"BadRequestError","param":null,"code":400}}"#;
    let head = || Head { status: StatusCode::BAD_REQUEST, ..json_head() };
    for endpoints in [&[CHAT][..], &[CHAT, Endpoint::Messages, Endpoint::Responses]] {
        let error_of = async |path: &str, body: &str| {
            let mut kit = Kit::new();
            kit.serves(&["m"], endpoints);
            let response = kit.post_for_all(path, body, head(), vllm).await;
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
            serde_json::from_str::<Value>(&text(response).await).unwrap()["error"].clone()
        };
        let messages = error_of("/v1/messages", ASK).await;
        assert_eq!(messages["message"], "prompt is too long: 9 tokens > 8 maximum");
        assert_eq!(messages["type"], "invalid_request_error");
        let input = r#"{"model":"m","input":"hi"}"#;
        for (path, body) in [("/v1/chat/completions", ASK), ("/v1/responses", input)] {
            assert_eq!(error_of(path, body).await["code"], "context_length_exceeded", "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn when_to_come_again_is_kept() {
    let mut kit = chat_only();
    let limited = head(&[("content-type", "application/json"), ("retry-after", "7")]);
    let limited = Head { status: StatusCode::TOO_MANY_REQUESTS, ..limited };
    let body = r#"{"error":{"message":"slow down","type":"x"}}"#;
    let response = kit.post_for_all("/v1/messages", ASK, limited, body).await;
    assert_eq!(
        (response.status(), &response.headers()["retry-after"]),
        (StatusCode::TOO_MANY_REQUESTS, &http::HeaderValue::from_static("7"))
    );
    assert!(text(response).await.contains(r#""type":"rate_limit_error""#));
}
