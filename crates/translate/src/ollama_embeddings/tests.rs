//! The requests and answers of an Ollama client's embed and embeddings.

use serde_json::{Value, json};

use super::{embed_answer, embed_request, embeddings_answer, embeddings_request};
use crate::{Context, answer::Body, kit::answered};

fn context() -> Context {
    Context { id: "ab".into(), created: 5, model: "m:latest".into(), streaming: true }
}

#[test]
fn texts_become_the_input() {
    let sent = |body: &Value| -> Value {
        let sent = embed_request(body.to_string().as_bytes(), &context());
        serde_json::from_slice(&sent.unwrap()).unwrap()
    };
    let body = json!({"model": "m", "input": ["a", "b"], "dimensions": 3, "truncate": true, "options": {}});
    let expected =
        json!({"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 3});
    assert_eq!(sent(&body), expected);
    assert_eq!(sent(&json!({"model": "m", "input": "a"}))["input"], "a");
    let older = embeddings_request(br#"{"model":"m","prompt":"a"}"#, &context()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&older).unwrap()["input"], "a");
}

#[test]
fn other_inputs_are_named() {
    for (body, param) in [
        (json!({"model": "m"}), "input"),
        (json!({"model": "m", "input": 7}), "input"),
        (json!({"model": "m", "input": ["a", 7]}), "input[1]"),
        (json!({"model": "m", "input": [[1, 2]]}), "input[0]"),
        (json!({"model": "m", "input": "a", "dimensions": -1}), "dimensions"),
    ] {
        let refused = embed_request(body.to_string().as_bytes(), &context()).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some(param), "{body}");
    }
    for body in [json!({"model": "m"}), json!({"model": "m", "prompt": ["a"]})] {
        let refused = embeddings_request(body.to_string().as_bytes(), &context()).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some("prompt"), "{body}");
    }
}

#[test]
fn vectors_keep_their_order_and_their_digits() {
    let body = r#"{"data":[{"index":1,"embedding":[0.10]},{"index":0,"embedding":[1e-3,2]}],"usage":{"prompt_tokens":4}}"#;
    let pieces = body.as_bytes().split_at(30);
    let text = answered(embed_answer(&context()), 200, Body::Json, &[pieces.0, pieces.1]).unwrap();
    assert!(text.contains(r#""embeddings":[[1e-3,2],[0.10]]"#), "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["model"], &answer["prompt_eval_count"]), (&json!("m:latest"), &json!(4)));
    let one = answered(embeddings_answer(&context()), 200, Body::Json, &[body.as_bytes()]).unwrap();
    assert_eq!(one, r#"{"embedding":[1e-3,2]}"#);
}

#[test]
fn answers_without_vectors_are_errors() {
    for body in ["{}", r#"{"data":[{"embedding":"AAAA"}]}"#, r#"{"error":"x"}"#, "<html>", ""] {
        let read = answered(embed_answer(&context()), 200, Body::Json, &[body.as_bytes()]);
        assert!(read.is_err(), "{body}");
    }
    let none = answered(embeddings_answer(&context()), 200, Body::Json, &[br#"{"data":[]}"#]);
    assert!(none.is_err());
    let refused =
        answered(embed_answer(&context()), 404, Body::Json, &[br#"{"error":{"message":"no"}}"#]);
    assert_eq!(refused.unwrap(), r#"{"error":"no"}"#);
}
