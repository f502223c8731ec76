//! Whole answers as one message.

use protocol::failure::{BadAnswer, MAX_KEPT};
use serde_json::{Value, json};

use super::{answered, context, delta, events, finish};
use crate::answer::{Answer, Body};

fn whole(answer: &Value) -> Value {
    let text = answer.to_string();
    let text = answered(false, &json!({}), 200, Body::Json, &[text.as_bytes()]).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn answer(message: &Value, reason: &str) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}})
}

fn input_of(arguments: &Value) -> Value {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    whole(&answer(&message, "tool_calls"))["content"][0]["input"].clone()
}

#[test]
fn a_text_is_a_message() {
    let message = whole(&answer(&json!({"role": "assistant", "content": "Hi"}), "stop"));
    let expected = json!({
        "id": "msg_0123456789abcdef0123456789abcdef", "type": "message", "role": "assistant",
        "model": "claude-x", "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 9, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": 3},
    });
    assert_eq!(message, expected);
}

#[test]
fn thoughts_text_and_calls_are_blocks() {
    let message = whole(&answer(
        &json!({"role": "assistant", "content": "I look.", "reasoning": "Hm.", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"b\":1,\"a\":2}"}},
            {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}}]}),
        "tool_calls",
    ));
    let expected = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"b": 1, "a": 2}},
        {"type": "tool_use", "id": "call_2", "name": "g", "input": {}},
    ]);
    assert_eq!((&message["content"], &message["stop_reason"]), (&expected, &json!("tool_use")));
}

#[test]
fn an_input_is_always_an_object() {
    assert_eq!(input_of(&json!("{\"a\":1}")), json!({"a": 1}));
    assert_eq!(input_of(&json!({"a": 1})), json!({"a": 1}));
    for broken in [json!("{\"a\":"), json!("[1]"), json!("no"), json!(""), json!(null), json!(7)] {
        assert_eq!(input_of(&broken), json!({}), "{broken}");
    }
}

#[test]
fn a_refusal_is_said() {
    let message = whole(&answer(&json!({"content": null, "refusal": "No."}), "content_filter"));
    assert_eq!(message["content"], json!([{"type": "text", "text": "No."}]));
    assert_eq!(message["stop_reason"], "refusal");
}

#[test]
fn a_stream_for_a_client_of_a_whole_answer_is_one_message() {
    let stream =
        events(&[delta(&json!({"content": "H"})), delta(&json!({"content": "i"})), finish("stop")]);
    for kind in [Body::Events, Body::Json] {
        let text = answered(false, &json!({}), 200, kind, &[stream.as_bytes()]).unwrap();
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message["content"], json!([{"type": "text", "text": "Hi"}]));
    }
}

#[test]
fn errors_are_told_in_the_clients_words() {
    let cases = [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
    ];
    for (status, kind) in cases {
        for streaming in [true, false] {
            let mut map = super::answer(&context(streaming), b"{}");
            assert_eq!(map.head(status, Body::Json), (status, Body::Json));
            let mut out = Vec::new();
            map.feed(br#"{"error":{"message":"no","#, &mut out).unwrap();
            map.feed(br#""type":"x"}}"#, &mut out).unwrap();
            map.end(&mut out).unwrap();
            let error: Value = serde_json::from_slice(&out).unwrap();
            let expected = json!({"type": "error", "error": {"type": kind, "message": "no"},
                "request_id": "r-0123456789abcdef0123456789abcdef"});
            assert_eq!(error, expected);
        }
    }
}

#[test]
fn the_head_tells_what_the_client_gets() {
    for (streaming, body) in [(true, Body::Events), (false, Body::Json)] {
        for kind in [Body::Events, Body::Json] {
            assert_eq!(super::answer(&context(streaming), b"{}").head(200, kind), (200, body));
        }
    }
}

#[test]
fn nonsense_is_the_providers_fault() {
    for nonsense in ["", "<html>", "{}", "[]", r#"{"choices":[]}"#, r#"{"error":{"message":"x"}}"#]
    {
        let answer = answered(false, &json!({}), 200, Body::Json, &[nonsense.as_bytes()]);
        assert!(answer.is_err(), "{nonsense}");
    }
}

#[test]
fn a_kept_answer_is_bounded() {
    let mebibyte = vec![b' '; 1024 * 1024];
    let most = MAX_KEPT / mebibyte.len();
    for (streaming, kind) in [(false, Body::Json), (true, Body::Json)] {
        let mut map = super::answer(&context(streaming), b"{}");
        map.head(200, kind);
        let mut feed = |_| map.feed(&mebibyte, &mut Vec::new());
        assert!((0..most).try_for_each(&mut feed).is_ok());
        assert!(matches!(feed(0), Err(BadAnswer(why)) if why.contains("longer than")));
    }
    let mut map = super::answer(&context(false), b"{}");
    map.head(200, Body::Events);
    let text = "x".repeat(1024 * 1024);
    let chunk = events(&[delta(&json!({"content": text}))]);
    let fed: Result<Vec<()>, _> =
        (0..=most).map(|_| map.feed(chunk.as_bytes(), &mut Vec::new())).collect();
    assert!(fed.is_err());
}

#[test]
fn held_events_are_bounded() {
    let mut map = super::answer(&context(true), b"{}");
    map.head(200, Body::Events);
    let begin = |index: usize| {
        delta(&json!({"tool_calls": [{"index": index, "id": index.to_string(),
            "function": {"name": "f", "arguments": "{"}}]}))
    };
    let first = events(&[begin(0), begin(1)]);
    map.feed(first.as_bytes(), &mut Vec::new()).unwrap();
    let text = "x".repeat(1024 * 1024);
    let more =
        events(&[delta(&json!({"tool_calls": [{"index": 1, "function": {"arguments": text}}]}))]);
    let fed: Result<Vec<()>, _> =
        (0..65).map(|_| map.feed(more.as_bytes(), &mut Vec::new())).collect();
    assert!(matches!(fed, Err(BadAnswer(why)) if why.contains("have to wait")));
}
