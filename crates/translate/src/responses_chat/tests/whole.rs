//! Answers that are one object, and errors.

use serde_json::{Value, json};

use super::{answered, delta, events, finish};
use crate::answer::{Answer, Body};

fn whole(request: &Value, answer: &Value) -> Value {
    let text = answered(false, request, 200, Body::Json, &[answer.to_string().as_bytes()]).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_whole_answer_is_one_object() {
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "reasoning_content": "hm", "content": "Hi"}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 3}},
    });
    let response = whole(&json!({"instructions": "i", "max_output_tokens": 9}), &answer);
    assert_eq!(response["object"], "response");
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["content"][0]["text"], "hm");
    assert_eq!(response["output"][1]["content"][0]["text"], "Hi");
    assert_eq!(response["output_text"], "Hi", "and no thought");
    assert_eq!(response["usage"]["output_tokens_details"]["reasoning_tokens"], 3);
    assert_eq!(
        (&response["instructions"], &response["max_output_tokens"]),
        (&json!("i"), &json!(9))
    );
    for (field, value) in [
        ("error", Value::Null),
        ("incomplete_details", Value::Null),
        ("parallel_tool_calls", json!(true)),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("metadata", json!({})),
        ("text", json!({"format": {"type": "text"}})),
        ("previous_response_id", Value::Null),
        ("background", json!(false)),
    ] {
        assert_eq!(response[field], value, "{field}");
    }
}

#[test]
fn a_stream_for_a_client_of_a_whole_answer_is_one_object() {
    let stream = events(&[delta(&json!({"content": "Hi"})), finish("length")]);
    let text = answered(false, &json!({}), 200, Body::Events, &[stream.as_bytes()]).unwrap();
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(response["status"], "incomplete");
    assert_eq!(response["output"][0]["content"][0]["text"], "Hi");
    assert_eq!(response["output_text"], "Hi");
}

#[test]
fn an_error_keeps_its_status_and_its_words() {
    for streaming in [false, true] {
        let mut map = super::answer(&super::context(streaming), b"{}");
        assert_eq!(map.head(404, Body::Json), (404, Body::Json));
        let mut out = Vec::new();
        map.feed(br#"{"error":"model 'x' not found"}"#, &mut out).unwrap();
        map.end(&mut out).unwrap();
        let error: Value = serde_json::from_slice(&out).unwrap();
        let expected = json!({"message": "model 'x' not found", "type": "invalid_request_error", "param": null, "code": null});
        assert_eq!(error["error"], expected);
    }
}

#[test]
fn nonsense_is_an_error_of_the_provider() {
    for nonsense in ["", "<html>", "[]", "{}", r#"{"choices":[]}"#, r#"{"error":"x"}"#] {
        assert!(
            answered(false, &json!({}), 200, Body::Json, &[nonsense.as_bytes()]).is_err(),
            "{nonsense}"
        );
    }
}
