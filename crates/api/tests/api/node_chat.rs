//! `POST /api/chat`, as stock clients of the node protocol use it.

use std::time::Duration;

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use crate::kit::{Kit, head, next, sent, text};

const ASK: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.5,"max_new_tokens":7}"#;

fn request(body: &str) -> Request<Body> {
    let request = Request::post("/api/chat").header("content-type", "text/plain;charset=UTF-8");
    request.body(Body::from(body.to_owned())).unwrap()
}

/// The status and the error line of a refusal.
async fn refused(kit: &Kit, request: Request<Body>) -> (u16, Value) {
    let response = kit.send(request).await;
    let status = response.status().as_u16();
    let line = text(response).await;
    assert!(line.ends_with('\n'), "stock clients read whole lines only: {line:?}");
    (status, serde_json::from_str(&line).unwrap())
}

#[tokio::test(start_paused = true)]
async fn any_provider_answers_in_lines() {
    let mut kit = Kit::new();
    kit.serves(&["m"], &[Endpoint::ChatCompletions]);
    let events = head(&[("content-type", "text/event-stream")]);
    let (response, mut assignment) = kit.send_for(request(ASK), events).await;
    assert!(assignment.request.streaming);
    assert_eq!(assignment.request.headers["content-type"], "application/json");
    let body = sent(&assignment);
    assert_eq!((&body["stream"], &body["model"]), (&json!(true), &json!("m")));
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    for data in [
        r#"{"choices":[{"delta":{"content":"hel"}}]}"#,
        r#"{"choices":[{"delta":{"content":"lo\n"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ] {
        assignment.answer.chunk(Bytes::from(format!("data: {data}\n\n"))).unwrap();
    }
    assignment.answer.end();
    let lines = text(response).await;
    assert_eq!(lines, "{\"o\":\"hel\"}\n{\"o\":\"lo\\n\"}\n{\"done\":true}\n");
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_stock_words_and_the_proper_status() {
    let mut kit = Kit::new();
    let unknown = request(&ASK.replace("\"m\"", "\"nobody\""));
    let (status, error) = refused(&kit, unknown).await;
    assert_eq!((status, &error["err"]), (404, &json!("unknown model")));
    let (status, error) = refused(&kit, request("{")).await;
    assert_eq!((status, &error["err"]), (400, &json!("invalid request")));
    assert_eq!(error["message"], "the request body is not valid JSON (line 1, column 1)");
    kit.serves(&["m"], &[]);
    kit.lose_provider();
    let (status, error) = refused(&kit, request(ASK)).await;
    assert_eq!((status, &error["err"]), (404, &json!("unknown model")));
    let kit = Kit::with(|rules, _| rules.require_key = true);
    let (status, error) = refused(&kit, request(ASK)).await;
    assert_eq!((status, &error["err"]), (401, &json!("unauthorized")));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_told_in_stock_words() {
    let mut kit = Kit::with(|_, limits| limits.keepalive = Duration::ZERO);
    kit.serves(&["m"], &[Endpoint::ChatCompletions]);
    let response = tokio::spawn(kit.meanwhile(request(ASK)));
    let _silent = kit.assigned().await;
    let response = response.await.unwrap();
    assert_eq!(response.status(), 504);
    assert!(text(response).await.starts_with("{\"err\":\"timeout waiting for finish\""));
}

#[tokio::test(start_paused = true)]
async fn silence_brings_an_empty_line_and_a_lost_provider_an_error_line() {
    let mut kit = Kit::new();
    kit.serves(&["m"], &[Endpoint::ChatCompletions]);
    let events = head(&[("content-type", "text/event-stream")]);
    let (response, mut assignment) = kit.send_for(request(ASK), events).await;
    let word = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    assignment.answer.chunk(Bytes::from_static(word)).unwrap();
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "{\"o\":\"a\"}\n");
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "\n");
    kit.lose_provider();
    let error = next(&mut body).await.unwrap().unwrap();
    assert_eq!(error, "{\"err\":\"the worker was lost while it answered\"}\n");
    assert!(next(&mut body).await.is_none());
}
