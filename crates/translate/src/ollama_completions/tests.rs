//! The requests and answers of an Ollama client's raw generate.

use protocol::json::BadRequest;
use serde_json::{Value, json};

use super::{answer, request};
use crate::{
    Context,
    answer::Body,
    kit::{answered, with_fields},
};

fn context(streaming: bool) -> Context {
    Context { id: "ab".into(), created: 5, model: "m".into(), streaming }
}

fn with(fields: &Value) -> Result<Value, BadRequest> {
    let body = with_fields(json!({"model": "m", "prompt": "def "}), fields).to_string();
    Ok(serde_json::from_slice(&request(body.as_bytes(), &context(true))?).unwrap())
}

#[test]
fn a_prompt_stays_as_it_is() {
    let options = json!({"num_predict": 9, "stop": ["\n"], "temperature": 0, "min_p": 0.1});
    let sent = with(&json!({"suffix": "return", "options": options, "system": "dropped"})).unwrap();
    let expected = json!({
        "model": "m", "prompt": "def ", "suffix": "return", "max_tokens": 9, "stop": ["\n"], "temperature": 0,
        "min_p": 0.1, "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(sent, expected);
    let sent = with(&json!({"raw": true})).unwrap();
    assert_eq!((sent.get("suffix"), &sent["max_tokens"]), (None, &json!(1024)));
}

#[test]
fn what_cannot_be_carried_is_named() {
    for (fields, param) in [
        (json!({"images": ["aGk="]}), "images"),
        (json!({"format": "json"}), "format"),
        (json!({"context": [1]}), "context"),
        (json!({"prompt": []}), "prompt"),
        (json!({"suffix": 7}), "suffix"),
        (json!({"options": {"top_k": "x"}}), "options.top_k"),
    ] {
        assert_eq!(with(&fields).unwrap_err().param.as_deref(), Some(param), "{fields}");
    }
}

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"text\":\" \\n\"}]}\n\n",
    "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
);

fn answer_text(streaming: bool, kind: Body, text: &str) -> String {
    answered(answer(&context(streaming), b"{}"), 200, kind, &[text.as_bytes()]).unwrap()
}

#[test]
fn text_is_read_from_streams_and_whole_answers() {
    let text = answer_text(true, Body::Events, STREAM);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: String = lines.iter().map(|line| line["response"].as_str().unwrap()).collect();
    assert_eq!(said, " \na");
    let last = lines.last().unwrap();
    assert_eq!((&last["done_reason"], &last["eval_count"]), (&json!("length"), &json!(3)));
    let whole =
        r#"{"choices":[{"text":" \na","finish_reason":"length"}],"usage":{"completion_tokens":3}}"#;
    for (kind, text) in [(Body::Json, whole), (Body::Events, STREAM)] {
        let object: Value = serde_json::from_str(&answer_text(false, kind, text)).unwrap();
        assert_eq!((&object["response"], &object["eval_count"]), (&json!(" \na"), &json!(3)));
    }
}

#[test]
fn errors_and_cuts_are_told() {
    let failed = answer_text(true, Body::Events, "data: {\"error\":{\"message\":\"no room\"}}\n\n");
    assert_eq!(failed, "{\"error\":\"no room\"}\n");
    let cut = answer_text(true, Body::Events, &STREAM[..40]);
    assert!(cut.ends_with("{\"error\":\"the backend's answer was cut off\"}\n"), "{cut}");
    let whole =
        |text: &str| answered(answer(&context(false), b"{}"), 200, Body::Json, &[text.as_bytes()]);
    assert!(whole("{}").unwrap_err().0.contains("no choices"));
    assert!(whole(r#"{"error":"broken"}"#).unwrap_err().0.contains("broken"));
    assert!(whole("<html>").is_err());
}
