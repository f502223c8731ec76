//! Streams of several backends as events.

use protocol::failure::BadAnswer;
use serde_json::{Value, json};

use super::{
    answered, delta, events, finish,
    grammar::{self, ParsedStream},
};
use crate::{
    answer::Body,
    chat::parts::{MAX_CALL_WORD, MAX_CALLS},
};

const DONE: &str = "data: [DONE]\n\n";

fn streamed(stream: &str) -> ParsedStream {
    let request = json!({"stop_sequences": ["END"]});
    grammar::read(&answered(true, &request, 200, Body::Events, &[stream.as_bytes()]).unwrap())
}

fn texts(parsed: &ParsedStream) -> Vec<(&str, &str)> {
    parsed.blocks.iter().map(|(start, text)| (start["type"].as_str().unwrap(), &**text)).collect()
}

fn call(index: usize, id: &str, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "type": "function",
        "function": {"name": name, "arguments": arguments}}]})
}

fn more(index: usize, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
}

#[test]
fn text_is_a_message_byte_for_byte() {
    let usage = json!({"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 4}}});
    let stream = events(&[
        delta(&json!({"role": "assistant", "content": null})),
        delta(&json!({"content": "Hel"})),
        delta(&json!({"content": "lo \"you\"\n"})),
        finish("stop"),
        usage,
    ]) + DONE;
    let written = answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()]).unwrap();
    let expected = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"msg_0123456789abcdef0123456789abcdef","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}"#,
        "\n\nevent: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo \"you\"\n"}}"#,
        "\n\nevent: content_block_stop\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\nevent: message_delta\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":8,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":2}}"#,
        "\n\nevent: message_stop\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    );
    assert_eq!(written, expected);
}

#[test]
fn thoughts_come_before_what_is_said() {
    for name in ["reasoning_content", "reasoning"] {
        let parsed = streamed(
            &(events(&[
                delta(&json!({name: "Let me"})),
                delta(&json!({name: " see.", "content": ""})),
                delta(&json!({"content": "\n\nSo."})),
                finish("stop"),
            ]) + DONE),
        );
        assert_eq!(texts(&parsed), [("thinking", "Let me see."), ("text", "\n\nSo.")]);
    }
}

#[test]
fn parallel_calls_come_one_after_the_other() {
    let parsed = streamed(
        &(events(&[
            delta(&call(0, "call_a", "f", "")),
            delta(&call(1, "call_b", "g", "{\"b\"")),
            delta(&more(0, "{\"a\":")),
            delta(&more(1, ":2}")),
            delta(&more(0, "1}")),
            finish("tool_calls"),
        ]) + DONE),
    );
    assert_eq!(texts(&parsed), [("tool_use", "{\"a\":1}"), ("tool_use", "{\"b\":2}")]);
    assert_eq!(
        parsed.blocks[0].0,
        json!({"type": "tool_use", "id": "call_a", "name": "f", "input": {}})
    );
    assert_eq!(parsed.blocks[1].0["id"], "call_b");
    assert_eq!(parsed.last["delta"]["stop_reason"], "tool_use");
}

#[test]
fn a_call_that_is_complete_makes_room_for_the_next() {
    let pieces = [
        events(&[delta(&call(0, "a", "f", "{\"x\":\"}\"}"))]),
        events(&[delta(&call(1, "b", "g", "{1"))]),
    ];
    let mut map = super::answer(&super::context(true), b"{}");
    crate::Answer::head(&mut map, 200, Body::Events);
    let mut out = Vec::new();
    for piece in &pieces {
        crate::Answer::feed(&mut map, piece.as_bytes(), &mut out).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains(r#""index":1,"delta":{"type":"input_json_delta","partial_json":"{1"}"#),
        "{text}"
    );
}

#[test]
fn whole_calls_of_one_index_are_several() {
    // Ollama gives each call whole, and has given every one of them index 0.
    let parsed = streamed(
        &(events(&[
            delta(&call(0, "call_1", "f", "{\"a\":1}")),
            delta(&call(0, "call_2", "f", "{\"a\":2}")),
            finish("stop"),
        ]) + DONE),
    );
    assert_eq!(texts(&parsed), [("tool_use", "{\"a\":1}"), ("tool_use", "{\"a\":2}")]);
    assert_eq!(parsed.last["delta"]["stop_reason"], "tool_use");
}

#[test]
fn a_call_without_an_id_gets_one_and_one_without_a_name_is_none() {
    let parsed = streamed(
        &(events(&[
            delta(
                &json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}),
            ),
            delta(&json!({"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]})),
            finish("tool_calls"),
        ]) + DONE),
    );
    assert_eq!(
        (parsed.blocks.len(), &parsed.last["delta"]["stop_reason"]),
        (1, &json!("tool_use"))
    );
    assert_eq!(parsed.blocks[0].0["id"], "toolu_0123456789abcdef0123456789abcdef_0");
}

#[test]
fn a_name_may_come_after_the_id() {
    let parsed = streamed(
        &(events(&[
            delta(&json!({"tool_calls": [{"index": 0, "id": "a"}]})),
            delta(
                &json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}),
            ),
            finish("tool_calls"),
        ]) + DONE),
    );
    assert_eq!(
        (&parsed.blocks[0].0["id"], &parsed.blocks[0].0["name"]),
        (&json!("a"), &json!("f"))
    );
}

#[test]
fn empty_lines_around_a_call_are_no_text() {
    let parsed = streamed(
        &(events(&[
            delta(&json!({"reasoning_content": "Hm."})),
            delta(&json!({"content": "\n\n"})),
            delta(&call(0, "a", "f", "{}")),
            delta(&json!({"content": "\n"})),
            finish("tool_calls"),
        ]) + DONE),
    );
    assert_eq!(texts(&parsed), [("thinking", "Hm."), ("tool_use", "{}")]);
    let alone = streamed(&(events(&[delta(&json!({"content": "\n"})), finish("stop")]) + DONE));
    assert_eq!(texts(&alone), [("text", "\n")]);
}

#[test]
fn a_text_before_and_after_a_call_is_two_blocks() {
    let parsed = streamed(
        &(events(&[
            delta(&json!({"content": "I look."})),
            delta(&call(0, "a", "f", "{\"a\"")),
            delta(&json!({"content": "And?"})),
            delta(&more(0, ":1}")),
            finish("tool_calls"),
        ]) + DONE),
    );
    assert_eq!(texts(&parsed), [("text", "I look."), ("tool_use", "{\"a\":1}"), ("text", "And?")]);
}

#[test]
fn every_end_has_its_reason() {
    let reason = |choice: Value| {
        let chunk = json!({"choices": [choice]});
        streamed(&events(&[delta(&json!({"content": "x"})), chunk])).last["delta"].clone()
    };
    let ending =
        |reason: &str, sequence: Value| json!({"stop_reason": reason, "stop_sequence": sequence});
    let finished = |word: &str| reason(json!({"index": 0, "delta": {}, "finish_reason": word}));
    assert_eq!(finished("stop"), ending("end_turn", json!(null)));
    assert_eq!(finished("length"), ending("max_tokens", json!(null)));
    assert_eq!(finished("content_filter"), ending("refusal", json!(null)));
    assert_eq!(finished("tool_calls"), ending("end_turn", json!(null)), "nothing was called");
    let called = events(&[delta(&call(0, "a", "f", "{}")), finish("tool_calls")]);
    assert_eq!(streamed(&called).last["delta"], ending("tool_use", json!(null)));
    let vllm =
        |stop: Value| reason(json!({"delta": {}, "finish_reason": "stop", "stop_reason": stop}));
    assert_eq!(vllm(json!("END")), ending("stop_sequence", json!("END")));
    assert_eq!(vllm(json!("<|im_end|>")), ending("end_turn", json!(null)));
    assert_eq!(vllm(json!(151_645)), ending("end_turn", json!(null)));
    let sglang = reason(json!({"delta": {}, "finish_reason": "stop", "matched_stop": "END"}));
    assert_eq!(sglang, ending("stop_sequence", json!("END")));
}

#[test]
fn events_after_the_end_are_ignored() {
    let stream = events(&[delta(&json!({"content": "x"})), finish("stop"), finish("stop")]) + DONE;
    let parsed = streamed(&(stream.clone() + &events(&[delta(&json!({"content": "y"}))]) + DONE));
    assert_eq!(parsed, streamed(&stream));
    let comments = format!(": ping\n\n{}", stream.replace("data: {", ": wait\n\ndata: {"));
    assert_eq!(streamed(&comments), parsed);
}

#[test]
fn a_done_without_a_reason_is_an_end_and_silence_is_none() {
    let chunks = events(&[delta(&json!({"content": "x"}))]);
    assert_eq!(streamed(&(chunks.clone() + DONE)).last["delta"]["stop_reason"], "end_turn");
    let cut = streamed(&chunks).last;
    let error = json!({"type": "api_error", "message": "the backend's answer was cut off"});
    assert_eq!((&cut["type"], &cut["error"]), (&json!("error"), &error));
    assert_eq!(streamed("").last["error"], error);
}

#[test]
fn an_error_in_the_stream_ends_it() {
    let cases = [
        (
            json!({"error": {"code": 500, "message": "out of memory", "type": "server_error"}}),
            "api_error",
        ),
        (
            json!({"error": {"message": "slow down", "type": "rate_limit_error"}}),
            "rate_limit_error",
        ),
        (json!({"error": {"code": 503, "message": "Loading model"}}), "overloaded_error"),
        (
            json!({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}),
            "invalid_request_error",
        ),
        (json!({"error": "it broke"}), "api_error"),
        (json!({"message": "Loading model", "code": 503}), "overloaded_error"),
    ];
    for (error, kind) in cases {
        let said = delta(&json!({"content": "x"}));
        let parsed = streamed(&(events(&[said, error.clone(), finish("stop")]) + DONE));
        assert_eq!(parsed.last["error"]["type"], kind, "{error}");
        assert_eq!(parsed.last["request_id"], "r-0123456789abcdef0123456789abcdef");
        assert_eq!(streamed(&events(&[error])).last["error"]["type"], kind);
    }
}

#[test]
fn a_whole_answer_becomes_the_events_of_a_stream() {
    let answer = json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "Hi", "reasoning_content": "Hm",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    for (kind, space) in [(Body::Json, ""), (Body::Json, "\n "), (Body::Events, "")] {
        let text = format!("{space}{answer}");
        let written = answered(true, &json!({}), 200, kind, &[text.as_bytes()]).unwrap();
        let parsed = grammar::read(&written);
        assert_eq!(texts(&parsed), [("thinking", "Hm"), ("text", "Hi"), ("tool_use", "{}")]);
        assert_eq!(parsed.last["usage"]["output_tokens"], 2);
    }
}

#[test]
fn an_event_that_is_no_chunk_is_the_providers_fault() {
    for nonsense in ["data: {\n\n", "data: <html>\n\n", "data: 5\n\n"] {
        let answer = answered(true, &json!({}), 200, Body::Events, &[nonsense.as_bytes()]);
        assert!(matches!(answer, Err(BadAnswer(why)) if why.contains("not understood")));
    }
}

#[test]
fn endless_calls_are_refused() {
    let calls: Vec<Value> =
        (0..=MAX_CALLS).map(|at| delta(&call(at, &at.to_string(), "f", "{}"))).collect();
    let fed = |calls: &[Value]| {
        let stream = events(calls) + DONE;
        answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()])
    };
    assert!(fed(&calls[..MAX_CALLS]).is_ok());
    assert!(matches!(fed(&calls), Err(BadAnswer(why)) if why.contains("1024 tools")));
}

#[test]
fn dropped_calls_do_not_wait_any_longer() {
    let arguments = json!({"a": "x".repeat(1024 * 1024)}).to_string();
    let calls: Vec<Value> =
        (0..70).map(|at| delta(&call(at, &at.to_string(), "", &arguments))).collect();
    let stream = events(&calls) + DONE;
    answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()]).unwrap();
}

#[test]
fn endless_words_of_calls_are_refused() {
    let fed = |length: usize| {
        let stream = events(&[delta(&call(0, &"a".repeat(length), "f", "{}"))]) + DONE;
        answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()])
    };
    assert!(fed(MAX_CALL_WORD).is_ok());
    assert!(matches!(fed(MAX_CALL_WORD + 1), Err(BadAnswer(why)) if why.contains("1024 bytes")));
}
