//! Answers of a Messages provider as chunks, and as one completion.

use protocol::failure::BadAnswer;
use serde_json::{Value, json};

use super::context;
use crate::answer::{Answer, Body};

fn answered(streaming: bool, kind: Body, text: &str) -> Result<String, BadAnswer> {
    let request = json!({"stream": streaming, "stream_options": {"include_usage": true}});
    let mut map = super::super::answer(&context(streaming), request.to_string().as_bytes());
    map.head(200, kind);
    let mut out = Vec::new();
    map.feed(text.as_bytes(), &mut out)?;
    map.end(&mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// The chunks of a stream, which `[DONE]` ends unless it has failed.
fn chunks(stream: &str) -> Vec<Value> {
    let written = answered(true, Body::Events, stream).unwrap();
    let mut lines: Vec<&str> = written.split_terminator("\n\n").collect();
    let done = lines.pop_if(|line| *line == "data: [DONE]").is_some();
    let read = |line: &&str| serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
    let chunks: Vec<Value> = lines.iter().map(read).collect();
    assert_eq!(done, chunks.iter().all(|chunk| chunk.get("error").is_none()));
    chunks
}

/// The text that each chunk adds.
fn deltas(stream: &str) -> Vec<Value> {
    let delta = |chunk: Value| chunk["choices"][0]["delta"].clone();
    chunks(stream).into_iter().map(delta).filter(|delta| !delta.is_null()).collect()
}

fn events(events: &[Value]) -> String {
    let line =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 1}}})
}

fn block(index: usize, block: &Value, deltas: &[Value]) -> Vec<Value> {
    let start = json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = json!({"type": "content_block_stop", "index": index});
    let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
    [start].into_iter().chain(deltas.iter().map(delta)).chain([stop]).collect()
}

fn text(index: usize, said: &str) -> Vec<Value> {
    let delta = json!({"type": "text_delta", "text": said});
    block(index, &json!({"type": "text", "text": ""}), &[delta])
}

fn stop(reason: &str) -> Vec<Value> {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    vec![
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn stream(blocks: Vec<Vec<Value>>, reason: &str) -> String {
    let all: Vec<Value> =
        [start()].into_iter().chain(blocks.into_iter().flatten()).chain(stop(reason)).collect();
    events(&all)
}

#[test]
fn a_text_is_chunks_that_end_with_their_usage() {
    let chunks =
        chunks(&stream(vec![vec![json!({"type": "ping"})], text(0, "Hi \"you\"")], "end_turn"));
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-0123456789abcdef0123456789abcdef", "object": "chat.completion.chunk",
            "created": 1_700_000_000, "model": "fast",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut last = chunk(json!({}), json!(null));
    last["choices"] = json!([]);
    last["usage"] = json!({"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}});
    let expected = [
        chunk(json!({"role": "assistant", "content": ""}), json!(null)),
        chunk(json!({"content": "Hi \"you\""}), json!(null)),
        chunk(json!({}), json!("stop")),
        last,
    ];
    assert_eq!(chunks, expected);
}

#[test]
fn usage_is_told_only_to_who_asks() {
    let mut map = super::super::answer(&context(true), b"{}");
    map.head(200, Body::Events);
    let mut out = Vec::new();
    map.feed(stream(vec![], "end_turn").as_bytes(), &mut out).unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("usage"));
}

#[test]
fn thoughts_and_calls_have_their_fields() {
    let thought = json!({"type": "thinking_delta", "thinking": "Hm"});
    let signature = json!({"type": "signature_delta", "signature": "s"});
    let arguments = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let stream = stream(
        vec![
            block(0, &json!({"type": "thinking", "thinking": ""}), &[thought, signature]),
            block(1, &call("a"), &[arguments(""), arguments("{\"a\":"), arguments("1}")]),
            block(2, &call("b"), &[]),
        ],
        "tool_use",
    );
    let call = |index: usize, id: &str| json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "f", "arguments": ""}}]});
    let more = |index: usize, text: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]});
    let expected = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "Hm"}),
        call(0, "a"),
        more(0, "{\"a\":"),
        more(0, "1}"),
        call(1, "b"),
        more(1, "{}"),
        json!({}),
    ];
    assert_eq!(deltas(&stream), expected);
}

#[test]
fn blocks_of_the_providers_own_tools_are_passed_over() {
    let query = json!({"type": "input_json_delta", "partial_json": "{\"query\":1}"});
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "x"}]});
    let stream =
        stream(vec![block(0, &search, &[query]), block(1, &found, &[]), text(2, "Hi")], "end_turn");
    let expected =
        [json!({"role": "assistant", "content": ""}), json!({"content": "Hi"}), json!({})];
    assert_eq!(deltas(&stream), expected);
}

#[test]
fn every_end_has_its_reason() {
    for (rest, expected) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
    ] {
        let chunks = chunks(&stream(vec![text(0, "x")], rest));
        assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], expected);
    }
}

#[test]
fn an_error_ends_a_stream_and_so_does_silence() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let answer = chunks(&events(&[start(), error, text(0, "x")[0].clone()]));
    let expected = json!({"message": "busy", "type": "server_error", "param": null, "code": "server_is_overloaded"});
    assert_eq!(answer.last().unwrap()["error"], expected);
    let cut = chunks(&events(&[start()]));
    assert_eq!(cut.last().unwrap()["error"]["message"], "the backend's answer was cut off");
    let almost = events(&[&[start()], &stop("end_turn")[..1]].concat());
    assert_eq!(deltas(&almost).last(), Some(&json!({})));
}

#[test]
fn a_message_is_one_completion() {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "text", "text": "H"},
            {"type": "text", "text": "i"}, {"type": "tool_use", "id": "a", "name": "f", "input": {"b": 1}}],
        "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 7}});
    let text = answered(false, Body::Json, &message.to_string()).unwrap();
    let call =
        json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"b\":1}"}});
    let expected = json!({
        "id": "chatcmpl-0123456789abcdef0123456789abcdef", "object": "chat.completion",
        "created": 1_700_000_000, "model": "fast",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
            "role": "assistant", "content": "Hi", "refusal": null, "reasoning_content": "Hm",
            "tool_calls": [call]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 0}}});
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    let streamed = answered(true, Body::Json, &message.to_string()).unwrap();
    assert!(streamed.contains(r#""content":"H""#) && streamed.ends_with("data: [DONE]\n\n"));
}

#[test]
fn an_empty_answer_has_no_content() {
    let message = json!({"type": "message", "content": [], "stop_reason": "end_turn"});
    let text = answered(false, Body::Json, &message.to_string()).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        answer["choices"][0]["message"],
        json!({"role": "assistant", "content": null, "refusal": null})
    );
}

#[test]
fn an_error_status_keeps_its_words() {
    let mut map = super::super::answer(&context(false), b"{}");
    assert_eq!(map.head(529, Body::Json), (529, Body::Json));
    let mut out = Vec::new();
    map.feed(br#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#, &mut out)
        .unwrap();
    map.end(&mut out).unwrap();
    let error: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(error["error"]["message"], "busy");
}

#[test]
fn nonsense_is_the_providers_fault() {
    for nonsense in ["", "<html>", "[]", "{}", r#"{"type":"error","error":{"message":"x"}}"#] {
        assert!(answered(false, Body::Json, nonsense).is_err(), "{nonsense}");
    }
    assert!(answered(true, Body::Events, "data: {\n\n").is_err());
}
