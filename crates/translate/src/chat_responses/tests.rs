//! The requests and answers of a Chat Completions client, with a provider of Responses.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::{answer, answer::MAX_ITEMS, request};
use crate::{
    answer::{Answer, Body, Context},
    kit::{self, with_fields},
    responses_chat,
};
use protocol::{failure::BadAnswer, json::BadRequest};

fn context(streaming: bool) -> Context {
    Context { id: "ab".into(), created: 5, model: "fast".into(), streaming }
}

fn with(fields: &Value) -> Result<Value, BadRequest> {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let body = with_fields(body, fields);
    Ok(serde_json::from_slice(&request(body.to_string().as_bytes(), &context(false))?).unwrap())
}

fn answered(streaming: bool, body: Body, pieces: &[&[u8]]) -> Result<String, BadAnswer> {
    let map = answer(&context(streaming), br#"{"stream_options":{"include_usage":true}}"#);
    kit::answered(map, 200, body, pieces)
}

/// A stream of these events.
fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|it| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap()))
        .collect()
}

/// A whole answer as a client of Chat Completions gets it for a provider's stream.
fn whole(stream: &[Value]) -> Value {
    let text = answered(false, Body::Events, &[events(stream).as_bytes()]).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn completed(output: &Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output, "error": null, "usage": {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 12}}})
}

#[test]
fn the_least_request_is_not_stored() {
    assert_eq!(
        with(&json!({})).unwrap(),
        json!({"model": "m", "input": [{"type": "message", "role": "user", "content": "hi"}], "stream": false, "store": false})
    );
}

#[test]
fn a_conversation_becomes_items() {
    let messages = json!([
        {"role": "system", "content": "Be short."},
        {"role": "user", "name": "ann", "content": [
            {"type": "text", "text": "what?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}},
        ]},
        {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "z"},
        {"role": "assistant", "content": null, "refusal": "No."},
    ]);
    assert_eq!(
        with(&json!({"messages": messages})).unwrap()["input"],
        json!([
            {"type": "message", "role": "system", "content": "Be short."},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "what?"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
            ]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
            {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "x\ny"},
            {"type": "function_call_output", "call_id": "c2", "output": "z"},
            {"type": "message", "role": "assistant", "content": "No."},
        ])
    );
}

#[test]
fn results_follow_their_calls_and_sealed_thoughts_go_where_they_can_be_read() {
    let id = "x".repeat(70);
    let details = json!([
        {"type": "reasoning.summary", "summary": "hm", "format": "openai-responses-v1"},
        {"type": "reasoning.encrypted", "data": "E", "format": "openai-responses-v1", "id": "rs_1"},
        {"type": "reasoning.encrypted", "data": "A", "format": "anthropic-claude-v1"}]);
    let messages = json!([
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}], "reasoning_details": details,
            "tool_calls": [{"id": id, "function": {"name": "f", "arguments": null}}]},
        {"role": "user", "content": "wait"},
        {"role": "tool", "tool_call_id": id, "content": null}]);
    let input = with(&json!({"messages": messages, "user": id})).unwrap();
    assert_eq!(input["user"].as_str().unwrap().len(), 64);
    let input = &input["input"];
    let call_id = input[2]["call_id"].as_str().unwrap();
    assert_eq!(call_id.len(), 64);
    let expected = json!([
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "E"},
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": ""},
        {"type": "message", "role": "user", "content": "wait"}]);
    assert_eq!(input, &expected);
}

#[test]
fn parameters_are_carried_under_their_responses_names() {
    let given = json!({
        "max_tokens": 5, "max_completion_tokens": 6, "temperature": 0.5, "top_p": 1, "user": "u", "stream": true,
        "metadata": {"k": "v"}, "reasoning_effort": "low", "verbosity": "low", "parallel_tool_calls": false,
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": true}},
        "stop": null, "n": 1, "logprobs": false, "modalities": ["text"], "seed": 1,
    });
    let mut expected = json!({
        "max_output_tokens": 6, "temperature": 0.5, "top_p": 1, "user": "u", "stream": true, "store": false,
        "metadata": {"k": "v"}, "reasoning": {"effort": "low"}, "parallel_tool_calls": false,
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": false}],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": {}, "strict": true}},
    });
    let made = with(&given).unwrap();
    expected["model"] = made["model"].clone();
    expected["input"] = made["input"].clone();
    assert_eq!(made, expected);
}

#[test]
fn fields_unknown_to_responses_are_named() {
    let message = |message: Value| json!({"messages": [message]});
    for (fields, param) in [
        (json!({"stop": ["x"]}), "stop"),
        (json!({"n": 2}), "n"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"logit_bias": {"5": 1}}), "logit_bias"),
        (json!({"functions": [{"name": "f"}]}), "functions"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"web_search_options": {}}), "web_search_options"),
        (json!({"messages": []}), "messages"),
        (json!({"tools": [{"type": "custom", "custom": {"name": "c"}}]}), "tools[0]"),
        (json!({"tool_choice": {"type": "allowed_tools"}}), "tool_choice"),
        (json!({"response_format": {"type": "grammar"}}), "response_format"),
        (message(json!({"role": "function", "content": "x"})), "messages[0].role"),
        (message(json!({"role": "user"})), "messages[0].content"),
        (
            message(json!({"role": "user", "content": [{"type": "input_audio"}]})),
            "messages[0].content[0]",
        ),
        (
            message(json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "custom"}]})),
            "messages[0].tool_calls[0]",
        ),
        (
            message(json!({"role": "assistant", "function_call": {"name": "f"}})),
            "messages[0].function_call",
        ),
        (message(json!({"role": "tool", "content": "x"})), "messages[0].tool_call_id"),
    ] {
        assert_eq!(with(&fields).unwrap_err().param.as_deref(), Some(param), "{fields}");
    }
}

#[test]
fn deltas_are_carried_once() {
    let output = json!([
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": "B"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\":1}"},
    ]);
    let item = |kind: &str, place: usize| json!({"type": format!("response.output_item.{kind}"), "output_index": place, "item": output[place]});
    let delta = |kind: &str, place: usize, text: &str| json!({"type": format!("response.{kind}.delta"), "output_index": place, "delta": text});
    let mut call = item("added", 2);
    call["item"]["arguments"] = json!("");
    let stream = [
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
        item("added", 0),
        delta("reasoning_summary_text", 0, "A"),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
        delta("reasoning_summary_text", 0, "B"),
        item("done", 0),
        delta("output_text", 1, "Hel"),
        delta("output_text", 1, "lo"),
        item("done", 1),
        call,
        delta("function_call_arguments", 2, "{\"a\""),
        delta("function_call_arguments", 2, ":1}"),
        item("done", 2),
        completed(&output),
    ];
    let expected = json!({
        "role": "assistant", "content": "Hello", "refusal": null, "reasoning_content": "A\n\nB",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}],
    });
    let answer = whole(&stream);
    assert_eq!(answer["choices"][0]["message"], expected);
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 3}})
    );
    // The same when only the last event tells it, or the answer is no stream.
    assert_eq!(whole(&[completed(&output)]), answer);
    let object = completed(&output)["response"].to_string();
    let text = answered(false, Body::Json, &[object.as_bytes()]).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), answer);
}

#[test]
fn a_stream_is_chunks_and_done() {
    let stream = [
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}),
        json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ];
    let text = answered(true, Body::Events, &[events(&stream).as_bytes()]).unwrap();
    let lines: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(lines.last(), Some(&"data: [DONE]"));
    assert!(lines.iter().any(|line| line.contains(r#""delta":{"content":"Hi"}"#)));
    assert!(lines.iter().any(|line| line.contains(r#""finish_reason":"length""#)));
    assert!(lines.iter().any(|line| line.contains(r#""prompt_tokens":1"#)));
}

#[test]
fn failures_are_told_in_the_stream() {
    let failures = [
        json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "gone"}}}),
        json!({"type": "error", "code": "server_error", "message": "gone", "param": null}),
    ];
    for failure in failures {
        let text = answered(true, Body::Events, &[events(&[failure]).as_bytes()]).unwrap();
        let error: Value =
            serde_json::from_str(text.trim().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(error["error"]["message"], "gone");
        assert_eq!(error["error"]["code"], "server_error");
    }
    let cut = events(&[json!({"type": "response.output_text.delta", "delta": "Hi"})]);
    let text = answered(true, Body::Events, &[cut.as_bytes()]).unwrap();
    assert!(text.contains("cut off") && !text.contains("[DONE]"));
    for nonsense in ["{}", "<html>", r#"{"status":"failed","output":[],"error":{"message":"x"}}"#] {
        assert!(answered(false, Body::Json, &[nonsense.as_bytes()]).is_err(), "{nonsense}");
    }
}

#[test]
fn endless_items_are_refused() {
    let mut map = answer(&context(true), b"{}");
    map.head(200, Body::Events);
    let mut out = Vec::new();
    let mut item = |place: usize| {
        let delta =
            json!({"type": "response.output_text.delta", "output_index": place, "delta": ""});
        map.feed(events(&[delta]).as_bytes(), &mut out)
    };
    assert!((0..MAX_ITEMS).all(|place| item(place).is_ok()));
    assert!(item(MAX_ITEMS).is_err());
}

/// An event that a provider could send, or nearly.
fn event() -> impl Strategy<Value = Value> {
    let kinds = [
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
        "response.output_item.done",
        "response.completed",
        "response.failed",
        "other",
    ];
    let item = prop_oneof![
        Just(Value::Null),
        Just(json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})),
        Just(json!({"type": "message", "content": [{"type": "output_text", "text": "t"}]})),
        Just(json!({"type": 5, "content": null, "name": {}})),
    ];
    (proptest::sample::select(kinds.to_vec()), 0..3u32, "[a{}\"]{0,3}", item).prop_map(
        |(kind, place, delta, item)| {
            json!({"type": kind, "output_index": place, "delta": delta, "item": item, "response": {"status": "completed", "output": [item]}})
        },
    )
}

proptest! {
    #[test]
    fn any_events_in_any_pieces_give_the_same(stream in vec(event(), 0..10), cuts in vec(0usize..3000, 0..6), streaming: bool) {
        let text = events(&stream);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
        let split = answered(streaming, Body::Events, &pieces);
        prop_assert_eq!(split, answered(streaming, Body::Events, &[text.as_bytes()]));
    }

    /// The text that we write for a client of Responses, read back as a provider's.
    #[test]
    fn our_own_responses_are_read_back(thought in "[a-z ]{0,8}", said in "[a-z\"\n]{1,8}", arguments in "[a-z]{0,6}") {
        let arguments = json!({"a": arguments}).to_string();
        let message = json!({"role": "assistant", "content": said, "reasoning_content": thought, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}]});
        let chat = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
        for body in [Body::Json, Body::Events] {
            let mut there = responses_chat::answer(&context(body == Body::Events), b"{}");
            there.head(200, Body::Json);
            let mut response = Vec::new();
            there.feed(chat.to_string().as_bytes(), &mut response).unwrap();
            there.end(&mut response).unwrap();
            let back: Value = serde_json::from_str(&answered(false, body, &[&response]).unwrap()).unwrap();
            let read = &back["choices"][0]["message"];
            if !said.trim().is_empty() {
                prop_assert_eq!(&read["content"], &json!(said));
            }
            prop_assert_eq!(read["reasoning_content"].as_str().unwrap_or(""), &thought);
            prop_assert_eq!(&read["tool_calls"], &message["tool_calls"]);
        }
    }
}
