//! The requests and answers of a node protocol's consumer.

use proptest::{collection::vec, prelude::*};
use protocol::json::BadRequest;
use serde_json::{Value, json};

use super::{INVALID, UNKNOWN_MODEL, answer, request};
use crate::{
    answer::{Answer, Body, Context},
    kit::with_fields,
};

fn context() -> Context {
    Context { id: "ab".into(), created: 5, model: "m".into(), streaming: true }
}

fn with(fields: &Value) -> Result<Value, BadRequest> {
    let body = with_fields(json!({"model": "m", "messages": ["hi"]}), fields);
    Ok(serde_json::from_slice(&request(body.to_string().as_bytes(), &context())?).unwrap())
}

fn answered(status: u16, body: Body, pieces: &[&[u8]]) -> String {
    let mut map = answer(&context(), b"{}");
    assert_eq!(map.head(status, body), (status, Body::Lines));
    let mut out = Vec::new();
    for piece in pieces {
        map.feed(piece, &mut out).unwrap();
    }
    map.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_least_request_has_the_stock_defaults() {
    assert_eq!(
        with(&json!({})).unwrap(),
        json!({
            "model": "m",
            "messages": [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": "hi"}],
            "max_tokens": 50, "temperature": 0, "stream": true, "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn strings_alternate_and_objects_say_who_speaks() {
    let strings = with(&json!({"system": "", "messages": ["a", "b", "c"]})).unwrap();
    let objects = with(&json!({"system": "", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]})).unwrap();
    assert_eq!(strings, objects);
    assert_eq!(strings["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn a_temperature_out_of_range_is_none() {
    let cases = [(0.0, 0.0), (0.009, 0.0), (0.01, 0.01), (0.99, 0.99), (1.0, 0.0), (-1.0, 0.0)];
    for (given, carried) in cases {
        let chat = with(&json!({"temperature": given, "max_new_tokens": 7})).unwrap();
        assert_eq!(chat["temperature"].as_f64(), Some(carried));
        assert_eq!(chat["max_tokens"], 7);
    }
}

#[test]
fn unreadable_fields_are_named() {
    for (fields, param) in [
        (json!({"messages": []}), "messages"),
        (json!({"messages": null}), "messages"),
        (json!({"messages": "hi"}), "messages"),
        (json!({"messages": ["a", 7]}), "messages[1]"),
        (json!({"messages": [{"role": "robot", "content": "x"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (json!({"system": 7}), "system"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"max_new_tokens": 0}), "max_new_tokens"),
        (json!({"max_new_tokens": -1}), "max_new_tokens"),
    ] {
        assert_eq!(with(&fields).unwrap_err().param.as_deref(), Some(param), "{fields}");
    }
}

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"a \\\"é\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"\\n\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn text_comes_in_lines() {
    let lines = "{\"o\":\"a \\\"é\"}\n{\"o\":\"\\n\"}\n{\"done\":true}\n";
    assert_eq!(answered(200, Body::Events, &[STREAM.as_bytes()]), lines);
    let whole = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let lines = "{\"o\":\"Hi\"}\n{\"done\":true}\n";
    assert_eq!(answered(200, Body::Json, &[whole.as_bytes()]), lines);
}

#[test]
fn every_error_is_a_line() {
    let error = br#"{"error":{"message":"no \"room\"","type":"x"}}"#;
    let line = "{\"err\":\"no \\\"room\\\"\"}\n";
    assert_eq!(answered(503, Body::Json, &[error]), line);
    for (status, word) in [(400, INVALID), (413, INVALID), (422, INVALID), (404, UNKNOWN_MODEL)] {
        let line = format!("{{\"err\":\"{word}\",\"message\":\"no \\\"room\\\"\"}}\n");
        assert_eq!(answered(status, Body::Json, &[error]), line);
    }
    assert_eq!(answered(200, Body::Json, &[error]), line);
    let stream = [b"data: ".as_slice(), error, b"\n\n"].concat();
    assert_eq!(answered(200, Body::Events, &[&stream]), line);
    let cut =
        &STREAM.as_bytes()[..STREAM.find("data: {\"choices\":[{\"delta\":{\"reasoning").unwrap()];
    assert!(answered(200, Body::Events, &[cut]).starts_with("{\"err\""));
}

proptest! {
    #[test]
    fn splitting_changes_nothing(cuts in vec(0..STREAM.len(), 0..6)) {
        let mut cuts = cuts;
        cuts.extend([0, STREAM.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]).collect();
        let whole = answered(200, Body::Events, &[STREAM.as_bytes()]);
        prop_assert_eq!(answered(200, Body::Events, &pieces), whole);
    }
}
