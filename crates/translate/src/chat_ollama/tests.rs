//! Requests in Ollama's shape, and its answers, whole and in lines.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{answer::Body, kit::answered};

fn context(streaming: bool) -> Context {
    Context { id: "ab".into(), created: 5, model: "fast".into(), streaming }
}

fn written(chat: &Value) -> Value {
    let body = request(chat.to_string().as_bytes(), &context(false), Some(32_768)).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn refused(chat: &Value) -> String {
    request(chat.to_string().as_bytes(), &context(false), None).unwrap_err().param.unwrap()
}

fn chat(more: &Value) -> Value {
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    crate::kit::with_fields(chat, more)
}

#[test]
fn options_are_ollamas_and_the_context_is_among_them() {
    let given = chat(&json!({"stream": true, "max_tokens": 9, "max_completion_tokens": 7,
        "temperature": 0.5, "top_p": 1, "top_k": 3, "min_p": 0.1, "seed": 4, "stop": "x",
        "frequency_penalty": 0.2, "presence_penalty": 0.3, "user": "u", "keep_alive": "5m"}));
    let expected = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
        "options": {"num_ctx": 32_768, "num_predict": 7, "temperature": 0.5, "top_p": 1, "top_k": 3,
            "min_p": 0.1, "seed": 4, "stop": ["x"], "frequency_penalty": 0.2, "presence_penalty": 0.3},
        "keep_alive": "5m", "stream": true});
    assert_eq!(written(&given), expected);
    let stops = written(&chat(&json!({"stop": ["a", "b"]})));
    assert_eq!((&stops["options"]["stop"], &stops["stream"]), (&json!(["a", "b"]), &json!(false)));
}

#[test]
fn a_conversation_keeps_its_pictures_thoughts_calls_and_results() {
    let picture =
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
    let given = json!({"model": "m", "messages": [
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, picture, {"type": "text", "text": "here"}]},
        {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "7"},
    ]});
    let expected = json!([
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "look\nhere", "images": ["iVBORw0KGgo="]},
        {"role": "assistant", "content": "", "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}]},
        {"role": "tool", "content": "7", "tool_name": "f", "tool_call_id": "c1"},
    ]);
    assert_eq!(written(&given)["messages"], expected);
}

#[test]
fn tools_formats_and_efforts_are_carried() {
    let tools = json!([{"type": "function", "function": {"name": "a", "strict": true}},
        {"type": "function", "function": {"name": "b", "description": "d", "parameters": {"type": "object", "properties": {}}}}]);
    let with =
        |more: Value| written(&crate::kit::with_fields(chat(&json!({"tools": tools})), &more));
    let all = with(json!({"tool_choice": "required"}));
    assert_eq!(
        all["tools"][0]["function"],
        json!({"name": "a", "parameters": {"type": "object", "properties": {}}})
    );
    assert_eq!(all["tools"][1]["function"]["description"], "d");
    assert_eq!(with(json!({"tool_choice": "none"})).get("tools"), None);
    let one = with(json!({"tool_choice": {"type": "function", "function": {"name": "b"}}}));
    assert_eq!(one["tools"].as_array().unwrap().len(), 1);
    assert_eq!(one["tools"][0]["function"]["name"], "b");

    let format =
        |format: Value| written(&chat(&json!({"response_format": format})))["format"].clone();
    assert_eq!(format(json!({"type": "json_object"})), "json");
    let schema = json!({"type": "object"});
    let named = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    assert_eq!(format(named), schema);
    assert_eq!(format(json!({"type": "text"})), Value::Null);
    for (effort, think) in
        [("none", json!(false)), ("minimal", json!("low")), ("high", json!("high"))]
    {
        assert_eq!(written(&chat(&json!({"reasoning_effort": effort})))["think"], think);
    }
}

#[test]
fn what_cannot_be_carried_is_refused_by_name() {
    for (more, param) in [
        (json!({"n": 2}), "n"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"response_format": {"type": "grammar"}}), "response_format"),
        (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema"),
        (json!({"reasoning_effort": "huge"}), "reasoning_effort"),
        (json!({"messages": 7}), "messages"),
        (json!({"messages": [{"role": "robot", "content": "x"}]}), "messages[0].role"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}]}),
            "messages[0].content[0].image_url.url",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "data:x"}}]}]}),
            "messages[0].content[0]",
        ),
    ] {
        assert_eq!(refused(&chat(&more)), param);
    }
}

const LINES: [&str; 6] = [
    r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"gr\u00fcn "},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"é"},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"f","arguments":{"a":1}}}]},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"own","function":{"index":0,"name":"g"}}]},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":11,"eval_count":3}"#,
];

fn stream(request: &Value, pieces: &[&[u8]]) -> Vec<Value> {
    let request = request.to_string();
    let map = answer(&context(true), request.as_bytes());
    let out = answered(map, 200, Body::Lines, pieces).unwrap();
    let events = out.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
    events
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn lines_become_chunks_with_thoughts_calls_reason_and_usage() {
    let lines = LINES.map(|line| format!("{line}\n")).concat();
    let given = json!({"stream": true, "stream_options": {"include_usage": true}});
    let chunks = stream(&given, &[lines.as_bytes()]);
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(deltas[1]["reasoning_content"], "hm");
    assert_eq!((&deltas[2]["content"], &deltas[3]["content"]), (&json!("grün "), &json!("é")));
    let calls: Vec<&Value> = deltas
        .iter()
        .map(|delta| &delta["tool_calls"][0])
        .filter(|call| call.is_object())
        .collect();
    assert_eq!(
        (&calls[0]["id"], &calls[0]["function"]["name"]),
        (&json!("call_ab_0"), &json!("f"))
    );
    assert_eq!(calls[1]["function"]["arguments"], r#"{"a":1}"#);
    assert_eq!((&calls[2]["id"], &calls[2]["index"]), (&json!("own"), &json!(1)));
    let [finish, usage] = &chunks[chunks.len() - 2..] else { panic!() };
    assert_eq!(finish["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        (&usage["usage"]["prompt_tokens"], &usage["usage"]["completion_tokens"]),
        (&json!(11), &json!(3))
    );
    assert_eq!(usage["model"], "fast");
}

#[test]
fn one_object_becomes_a_completion() {
    let body = json!({"model": "m", "message": {"role": "assistant", "content": "hi", "thinking": "hm"},
        "done": true, "done_reason": "length", "prompt_eval_count": 4, "eval_count": 2});
    let map = answer(&context(false), b"{}");
    let out = answered(map, 200, Body::Json, &[body.to_string().as_bytes()]).unwrap();
    let completion: Value = serde_json::from_str(&out).unwrap();
    let choice = &completion["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["message"]["reasoning_content"]),
        (&json!("hi"), &json!("hm"))
    );
    assert_eq!(
        (&choice["finish_reason"], &completion["usage"]["total_tokens"]),
        (&json!("length"), &json!(6))
    );
}

#[test]
fn errors_are_told_in_openais_words_wherever_they_come() {
    let map = answer(&context(true), b"{}");
    let out = answered(map, 404, Body::Json, &[br#"{"error":"model 'x' not found"}"#]).unwrap();
    let error: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(error["error"]["message"], "model 'x' not found");

    let first = format!("{}\n", LINES[1]);
    let broken = br#"{"error":"out of memory"}"#;
    let chunks = stream(&json!({}), &[first.as_bytes(), broken, b"\n"]);
    assert_eq!(chunks.last().unwrap()["error"]["message"], "out of memory");
    let chunks = stream(&json!({}), &[first.as_bytes()]);
    assert_eq!(chunks.last().unwrap()["error"]["message"], "the backend's answer was cut off");
    let map = answer(&context(false), b"{}");
    assert!(answered(map, 200, Body::Json, &[b"<html>"]).is_err());
}

#[test]
fn an_endless_line_is_no_answer() {
    let map = answer(&context(true), b"{}");
    let long = vec![b'x'; crate::MAX_KEPT + 1];
    assert!(answered(map, 200, Body::Lines, &[&long]).is_err());
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_chunks(size in 1..40usize) {
        let lines = LINES.map(|line| format!("{line}\n")).concat();
        let pieces: Vec<&[u8]> = lines.as_bytes().chunks(size).collect();
        let given = json!({"stream_options": {"include_usage": true}});
        prop_assert_eq!(stream(&given, &pieces), stream(&given, &[lines.as_bytes()]));
    }

    #[test]
    fn no_request_breaks_it(text in ".{0,60}") {
        let _ = request(text.as_bytes(), &context(true), Some(1));
        let messages = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
        prop_assert_eq!(&written(&messages)["messages"][0]["content"], &json!(text));
    }
}
