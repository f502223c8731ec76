//! Additions to a stream, and when they come.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use scheduler::Head;
use tokio::time::Instant;

use crate::kit::{Kit, head, next, text};

/// It asks for usage, so nothing is taken out of its stream.
const CHAT: &str =
    r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;

#[tokio::test(start_paused = true)]
async fn each_chunk_is_one_frame_unchanged() {
    let mut kit = Kit::new();
    let (response, mut assignment) = kit.post("/v1/chat/completions?a=b", CHAT).await;
    assert_eq!(assignment.request.path_and_query, "/v1/chat/completions?a=b");
    assert_eq!(assignment.request.body, CHAT);
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert_eq!(response.headers()["x-request-id"], assignment.job.to_string());
    let mut body = response.into_body();
    for chunk in [&b"data: {\"a\""[..], b":1}\n", b"\n", b"\xff\xfe"] {
        assignment.answer.chunk(Bytes::from_static(chunk)).unwrap();
        assert_eq!(next(&mut body).await.unwrap().unwrap(), chunk);
    }
    assignment.answer.end();
    assert!(next(&mut body).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn silence_between_events_brings_a_comment_and_within_one_nothing() {
    let mut kit = Kit::new();
    let (response, mut assignment) = kit.post("/v1/chat/completions", CHAT).await;
    let mut body = response.into_body();
    let began = Instant::now();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), ": keep-alive\n\n");
    assert_eq!(began.elapsed(), Duration::from_secs(15));
    assignment.answer.chunk(Bytes::from_static(b"data: half")).unwrap();
    next(&mut body).await;
    let silent = tokio::time::timeout(Duration::from_secs(100), next(&mut body)).await;
    assert!(silent.is_err(), "nothing may be added in the middle of an event");
    assignment.answer.chunk(Bytes::from_static(b"\n\n")).unwrap();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "\n\n");
    assert_eq!(next(&mut body).await.unwrap().unwrap(), ": keep-alive\n\n");
}

#[tokio::test(start_paused = true)]
async fn messages_are_kept_alive_by_pings_and_nobody_is_when_it_is_off() {
    let mut kit = Kit::new();
    let (response, _assignment) = kit.post("/v1/messages", CHAT).await;
    let ping = next(&mut response.into_body()).await.unwrap().unwrap();
    assert_eq!(ping, "event: ping\ndata: {\"type\": \"ping\"}\n\n");
    let mut off = Kit::with(|_, limits| limits.keepalive = Duration::ZERO);
    let (response, _assignment) = off.post("/v1/chat/completions", CHAT).await;
    let mut body = response.into_body();
    assert!(tokio::time::timeout(Duration::from_secs(200), next(&mut body)).await.is_err());
}

/// The bytes after the logical end of a stream, on the same connection.
const LATE: &str = "data: late\n\ngarbage";

#[tokio::test(start_paused = true)]
async fn silence_in_an_answer_that_is_no_stream_brings_nothing() {
    let mut kit = Kit::new();
    let json = head(&[("content-type", "application/json")]);
    let (response, mut assignment) =
        kit.post_for("/v1/chat/completions", r#"{"model":"m"}"#, json).await;
    assignment.answer.chunk(Bytes::from_static(b"{\"a\":\n\n")).unwrap();
    let whole = tokio::spawn(text(response));
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assignment.answer.chunk(Bytes::from_static(b"1}")).unwrap();
    assignment.answer.end();
    assert_eq!(whole.await.unwrap(), "{\"a\":\n\n1}");
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_the_logical_end_of_a_stream() {
    let plain = CHAT.replace(r#""stream_options":{"include_usage":true},"#, "");
    let done = "data: {\"choices\":[]}\n\ndata: [DONE]\n\n";
    let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let completed = "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    for (path, body, end) in [
        ("/v1/chat/completions", CHAT, done),
        ("/v1/chat/completions", plain.as_str(), done),
        ("/v1/completions", CHAT, done),
        ("/v1/messages", CHAT, stop),
        ("/v1/responses", CHAT, completed),
    ] {
        for cut in [end.len() - 1, end.len()] {
            let mut kit = Kit::new();
            let (response, mut assignment) = kit.post(path, body).await;
            let stream = Bytes::from(format!("{end}{LATE}"));
            assignment.answer.chunk(stream.slice(..cut)).unwrap();
            assignment.answer.chunk(stream.slice(cut..)).unwrap();
            let began = Instant::now();
            assert_eq!(text(response).await, end, "{path}: the connection is still open");
            assert_eq!(began.elapsed(), Duration::ZERO);
            assert!(!kit.scheduler.is_idle());
            kit.lose_provider();
            assert!(kit.scheduler.is_idle());
        }
    }
}

/// A stream that breaks off in the middle of an event.
async fn broken(path: &str) -> String {
    let mut kit = Kit::new();
    let (response, mut assignment) = kit.post(path, CHAT).await;
    assignment.answer.chunk(Bytes::from_static(b"data: {\"half")).unwrap();
    kit.lose_provider();
    text(response).await
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_closes_its_half_event_and_ends_with_its_apis_error_event() {
    let words = "the worker was lost while it answered";
    let chat = broken("/v1/chat/completions").await;
    let rest = chat.strip_prefix("data: {\"half\n\ndata: {\"error\":{").expect(&chat);
    assert!(rest.contains(words) && rest.ends_with("\n\n") && !rest.contains("[DONE]"));
    let responses = broken("/v1/responses").await;
    assert!(responses.starts_with("data: {\"half\n\nevent: error\ndata: {"), "{responses}");
    assert!(responses.contains("\"sequence_number\":0,\"error\":{\"message\""), "{responses}");
    let messages = broken("/v1/messages").await;
    let start = "data: {\"half\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{";
    assert!(messages.starts_with(start) && messages.contains(words), "{messages}");
}

#[tokio::test(start_paused = true)]
async fn a_broken_answer_that_is_no_stream_breaks_off() {
    let mut kit = Kit::new();
    let json = head(&[("content-type", "application/json")]);
    let (response, mut assignment) = kit.post_for("/v1/chat/completions", CHAT, json).await;
    assignment.answer.chunk(Bytes::from_static(b"{\"half")).unwrap();
    kit.lose_provider();
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "{\"half");
    assert!(next(&mut body).await.unwrap().is_err(), "the connection is cut: nothing is made up");
}

#[tokio::test(start_paused = true)]
async fn an_answer_shorter_or_longer_than_announced_breaks_off() {
    for announced in ["2", "4"] {
        let mut kit = Kit::new();
        let mut json = head(&[("content-type", "application/json")]);
        json.headers.insert("content-length", announced.parse().unwrap());
        let (response, mut assignment) = kit.post_for("/v1/chat/completions", CHAT, json).await;
        assignment.answer.chunk(Bytes::from_static(b"abc")).unwrap();
        assignment.answer.end();
        let read = axum::body::to_bytes(response.into_body(), 100).await;
        assert!(read.is_err(), "announced {announced}, sent 3");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_seen_by_the_provider() {
    let mut kit = Kit::new();
    let (response, mut assignment) = kit.post("/v1/chat/completions", CHAT).await;
    drop(response);
    assert!(assignment.answer.chunk(Bytes::from_static(b"x")).is_err());
    assert!(kit.scheduler.is_idle());
}

/// The writer of a response stops at the announced length, or before a body that may not be:
/// the answer's end may come after that.
#[tokio::test(start_paused = true)]
async fn a_response_that_is_out_before_its_end_was_not_left() {
    let mut kit = Kit::new();
    let three = head(&[("content-length", "3")]);
    let (response, mut assignment) = kit.post_for("/v1/chat/completions", CHAT, three).await;
    assignment.answer.chunk(Bytes::from_static(b"abc")).unwrap();
    let mut body = response.into_body();
    next(&mut body).await.unwrap().unwrap();
    drop(body);
    assert!(!kit.scheduler.is_idle(), "its end is waited for");
    assignment.answer.end();
    assert!(kit.scheduler.is_idle());
    let empty = Head { status: StatusCode::NO_CONTENT, ..head(&[]) };
    let (response, assignment) = kit.post_for("/v1/chat/completions", CHAT, empty).await;
    drop(response);
    assert!(!kit.scheduler.is_idle());
    assignment.answer.end();
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_length_that_is_none_does_not_spoil_the_answer() {
    let mut kit = Kit::new();
    let odd = head(&[("content-length", "2, 2")]);
    let (response, mut assignment) = kit.post_for("/v1/chat/completions", CHAT, odd).await;
    assert!(!response.headers().contains_key("content-length"));
    assignment.answer.chunk(Bytes::from_static(b"abc")).unwrap();
    assignment.answer.end();
    assert_eq!(text(response).await, "abc");
}
