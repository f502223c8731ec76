//! Answers that are not what they should be, and can be read all the same.

use serde_json::{Value, json};

use super::{answered, events, finish, grammar};
use crate::answer::Body;

const DONE: &str = "data: [DONE]\n\n";

/// The type and the text of each block that a Messages client gets.
fn blocks(stream: &str) -> Vec<(String, String)> {
    let written = answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()]).unwrap();
    let kind = |start: &Value| start["type"].as_str().unwrap().to_owned();
    grammar::read(&written).blocks.into_iter().map(|(start, text)| (kind(&start), text)).collect()
}

/// The text of a stream with one chunk for each of these deltas, written as they are.
fn text_of(deltas: &[&[u8]]) -> String {
    let mut stream = Vec::new();
    for delta in deltas {
        let around = [&b"data: {\"choices\":[{\"index\":0,\"delta\":"[..], b"}]}\n\n"];
        stream.extend([around[0], delta, around[1]].concat());
    }
    let end = events(&[finish("stop")]) + DONE;
    stream.extend(end.as_bytes());
    let written = answered(true, &json!({}), 200, Body::Events, &[&stream]).unwrap();
    grammar::read(&written).blocks.into_iter().map(|(_, text)| text).collect()
}

fn whole(message: &str) -> Value {
    let answer = format!(
        r#"{{"id":"c","object":"chat.completion","choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#
    );
    let written = answered(false, &json!({}), 200, Body::Json, &[answer.as_bytes()]).unwrap();
    serde_json::from_str(&written).unwrap()
}

#[test]
fn a_repeated_key_loses_nothing() {
    let delta = br#"{"reasoning_content":"hm","content":"Hello","reasoning_content":null}"#;
    assert_eq!(text_of(&[delta]), "Hello");
    let message =
        r#"{"role":"assistant","reasoning_content":"hm","content":"a","content":"Hello"}"#;
    assert_eq!(whole(message)["content"][1]["text"], "Hello");
    let usage = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":null,"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let stream = format!("{usage}\n\n{DONE}");
    let written = answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()]).unwrap();
    assert_eq!(grammar::read(&written).last["usage"]["output_tokens"], 2);
}

#[test]
fn an_odd_character_loses_nothing() {
    assert_eq!(text_of(&[br#"{"content":"a \ud83c"}"#, br#"{"content":"\udf89 b"}"#]), "a 🎉 b");
    assert_eq!(
        text_of(&[b"{\"content\":\"a \xf0\x9f\"}", b"{\"content\":\"\x8e\x89 b\"}"]),
        "a 🎉 b"
    );
    assert_eq!(text_of(&[br#"{"content":"a \ud83c b"}"#]), "a \u{fffd} b");
    assert_eq!(text_of(&[b"{\"content\":\"a\tb\"}"]), "a\tb");
    assert_eq!(text_of(&[br#"{"content":"a","logprobs":[NaN,-Infinity]}"#]), "a");
    let call = br#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":\"\ud83c"}}]}"#;
    let rest = br#"{"tool_calls":[{"index":0,"function":{"arguments":"\udf89\"}"}}]}"#;
    assert_eq!(text_of(&[call, rest]), "{\"a\":\"🎉\"}");
    assert_eq!(whole("{\"content\":\"a\tb \\ud83c\"}")["content"][0]["text"], "a\tb \u{fffd}");
}

#[test]
fn a_message_beside_the_deltas_is_not_told_twice() {
    let chunk = |delta: Value, so_far: &str| json!({"choices": [{"index": 0, "delta": delta, "message": {"role": "assistant", "content": so_far}}]});
    let stream = events(&[
        chunk(json!({"role": "assistant"}), "Hel"),
        chunk(json!({"content": "Hel"}), "Hel"),
        chunk(json!({"content": "lo"}), "Hello"),
        chunk(Value::Null, "Hello"),
        finish("stop"),
    ]) + DONE;
    assert_eq!(blocks(&stream), [("text".to_owned(), "Hello".to_owned())]);
    let only = events(&[chunk(Value::Null, "Hello"), finish("stop")]) + DONE;
    assert_eq!(blocks(&only), [("text".to_owned(), "Hello".to_owned())]);
}

#[test]
fn an_empty_object_is_a_placeholder_until_the_answer_ends() {
    let call = |index: u64, id: &str, name: &str, arguments: Value| {
        super::delta(
            &json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let more = |index: u64, arguments: &str| {
        super::delta(
            &json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}),
        )
    };
    let end = || events(&[finish("tool_calls")]) + DONE;
    let texts = |chunks: &[Value]| -> Vec<String> {
        blocks(&(events(chunks) + &end())).into_iter().map(|(_, text)| text).collect()
    };
    let whole = r#"{"path":"a"}"#;
    assert_eq!(texts(&[call(0, "a", "f", json!("{}")), more(0, whole)]), [whole]);
    assert_eq!(
        texts(&[call(0, "a", "f", json!({})), more(0, "{\"pa"), more(0, "th\":\"a\"}")]),
        [whole]
    );
    let crossed = [
        call(0, "a", "f", json!("{}")),
        call(1, "b", "g", json!("{}")),
        more(0, whole),
        more(1, whole),
    ];
    assert_eq!(texts(&crossed), [whole, whole]);
    assert_eq!(
        texts(&[call(0, "a", "f", json!("{}")), call(1, "b", "g", json!({"x": 1}))]),
        ["{}", "{\"x\":1}"]
    );
    assert_eq!(texts(&[call(0, "a", "f", json!("{}"))]), ["{}"]);
}

#[test]
fn each_call_of_a_whole_answer_is_one_of_its_own() {
    let message = whole(
        r#"{"content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"index":0,"function":{"name":"f","arguments":""}},{"id":"x","function":{"name":"f","arguments":"{}{\"b\":2}"}}]}"#,
    );
    let inputs: Vec<&Value> =
        message["content"].as_array().unwrap().iter().map(|block| &block["input"]).collect();
    assert_eq!(inputs, [&json!({"a": 1}), &json!({}), &json!({"b": 2})]);
}

#[test]
fn tokens_written_to_a_cache_are_told() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 108, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 100}}});
    let stream = events(&[super::delta(&json!({"content": "a"})), finish("stop"), usage]) + DONE;
    let written = answered(true, &json!({}), 200, Body::Events, &[stream.as_bytes()]).unwrap();
    let expected = json!({"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 3, "output_tokens": 1});
    assert_eq!(grammar::read(&written).last["usage"], expected);
}
