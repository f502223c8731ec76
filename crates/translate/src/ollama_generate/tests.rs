//! The requests and answers of an Ollama client's generate.

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
    let body = with_fields(json!({"model": "m", "prompt": "hi"}), fields).to_string();
    Ok(serde_json::from_slice(&request(body.as_bytes(), &context(false))?).unwrap())
}

#[test]
fn a_prompt_is_the_users_message() {
    let sent =
        with(&json!({"system": "Be brief.", "context": [], "template": "", "raw": false})).unwrap();
    let system = json!({"role": "system", "content": "Be brief."});
    assert_eq!(sent["messages"], json!([system, {"role": "user", "content": "hi"}]));
    assert_eq!((&sent["stream"], sent.get("stream_options")), (&json!(false), None));
    let sent = with(&json!({"images": ["aGk="], "format": "json", "options": {"num_predict": 3}, "think": "low"})).unwrap();
    assert_eq!(sent["messages"][0]["content"][1]["type"], "image_url");
    assert_eq!((&sent["max_tokens"], &sent["reasoning_effort"]), (&json!(3), &json!("low")));
    assert_eq!(sent["response_format"]["type"], "json_object");
}

#[test]
fn what_cannot_be_carried_is_named() {
    for (fields, param) in [
        (json!({"context": [1, 2]}), "context"),
        (json!({"template": "{{ .Prompt }}"}), "template"),
        (json!({"prompt": 7}), "prompt"),
        (json!({"prompt": null}), "prompt"),
        (json!({"system": []}), "system"),
        (json!({"images": ["?"]}), "images[0]"),
    ] {
        assert_eq!(with(&fields).unwrap_err().param.as_deref(), Some(param), "{fields}");
    }
}

#[test]
fn the_text_is_the_response() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\n",
        "data: [DONE]\n\n",
    );
    let text = answered(answer(&context(true), b"{}"), 200, Body::Events, &[stream.as_bytes()]);
    let text = text.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["thinking"], &lines[0]["response"]), (&json!("hm"), &json!("")));
    assert_eq!(lines[1]["response"], "a");
    assert_eq!((&lines[2]["done_reason"], &lines[2]["response"]), (&json!("length"), &json!("")));
    assert!(
        lines.iter().all(|line| line.get("message").is_none() && line.get("context").is_none())
    );
    assert_eq!(lines[2].get("eval_count"), None, "what was not told is not made up");
}
