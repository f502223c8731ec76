//! Estimates of known requests, and of arbitrary ones compared with a count over the parsed tree.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::Value;

use super::*;

fn count(body: &str) -> u64 {
    count_tokens(body.as_bytes()).unwrap()
}

#[test]
fn everything_that_the_model_reads_counts() {
    let plain = r#"{"messages":[{"role":"user","content":"Hello, world"}]}"#;
    assert_eq!(count(plain), FRAME_TOKENS + 3);
    let blocks =
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"Hello, world"}]}]}"#;
    assert_eq!(count(blocks), count(plain));
    let more = [
        r#"{"messages":[{"role":"user","content":"Hello, world"}],"system":"Be brief."}"#,
        r#"{"messages":[{"role":"user","content":"Hello, world"}],"system":[{"type":"text","text":"Be brief."}]}"#,
        r#"{"messages":[{"role":"user","content":"Hello, world"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"Hello, world"},{"type":"tool_result","tool_use_id":"a","content":"ok"}]}]}"#,
        r#"{"messages":[{"role":"user","content":"Hello, world"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":1}}]}]}"#,
    ];
    for body in more {
        assert!(count(body) > count(plain), "{body}");
    }
}

#[test]
fn a_picture_counts_the_same_whatever_its_size() {
    let picture = |data: &str| {
        count(&format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","data":"{data}"}}}}]}}]}}"#
        ))
    };
    assert_eq!(picture("aa"), IMAGE_TOKENS + FRAME_TOKENS);
    assert_eq!(picture(&"a".repeat(100_000)), picture("aa"));
}

#[test]
fn thoughts_of_earlier_turns_count_nothing() {
    let body = r#"{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"long thoughts"}]}]}"#;
    assert_eq!(count(body), FRAME_TOKENS);
}

#[test]
fn a_body_without_messages_is_refused() {
    assert_eq!(count_tokens(b"{}").unwrap_err().param.as_deref(), Some("messages"));
    assert_eq!(count_tokens(b"[").unwrap_err().param, None);
}

#[test]
fn a_block_may_say_last_what_it_is() {
    let blocks =
        |block: &str| count(&format!(r#"{{"messages":[{{"role":"user","content":[{block}]}}]}}"#));
    let first = r#"{"type":"text","text":"Hello, world"}"#;
    let last = r#"{"text":"Hello, world","type":"text"}"#;
    assert_eq!((blocks(first), blocks(last)), (FRAME_TOKENS + 3, FRAME_TOKENS + 3));
    let last = r#"{"source":{"data":"Hello, world","type":"text"},"type":"document"}"#;
    assert_eq!(blocks(last), FRAME_TOKENS + 3);
    let from = r#"{"type":"search_result","source":"https://a.example","content":[{"type":"text","text":"Hello, world"}]}"#;
    assert_eq!(blocks(from), FRAME_TOKENS + 3);
}

#[test]
fn bytes_after_the_request_are_refused() {
    assert_eq!(count_tokens(br#"{"messages":[]} 1"#).unwrap_err().param, None);
}

/// The same estimate, made from the parsed tree.
mod by_tree {
    use super::*;

    pub(super) fn count(request: &Value) -> Option<u64> {
        let messages = request.get("messages")?.as_array()?;
        let tools = request.get("tools").and_then(Value::as_array).into_iter().flatten();
        let system = request.get("system").map_or(0, content);
        Some(system + messages.iter().map(message).sum::<u64>() + tools.map(tool).sum::<u64>())
    }

    fn message(message: &Value) -> u64 {
        FRAME_TOKENS + message.get("content").map_or(0, content)
    }

    fn tool(tool: &Value) -> u64 {
        FRAME_TOKENS
            + ["name", "description", "input_schema"]
                .iter()
                .map(|name| json(&tool[name]))
                .sum::<u64>()
    }

    fn content(content: &Value) -> u64 {
        match content {
            Value::String(text) => estimate_tokens(text),
            Value::Array(blocks) => blocks.iter().map(block).sum(),
            _ => 0,
        }
    }

    fn block(block: &Value) -> u64 {
        match block["type"].as_str() {
            Some("text") => json(&block["text"]),
            Some("image") => IMAGE_TOKENS,
            Some("document") => match &block["source"] {
                source if source["type"] == "text" => json(&source["data"]),
                source if source["type"] == "content" => content(&source["content"]),
                _ => IMAGE_TOKENS,
            },
            Some("thinking" | "redacted_thinking") => 0,
            Some("tool_use") => FRAME_TOKENS + json(&block["name"]) + json(&block["input"]),
            Some(_) => block.get("content").map_or(0, content),
            None => 0,
        }
    }

    fn json(value: &Value) -> u64 {
        match value {
            Value::Null => 0,
            Value::String(text) => estimate_tokens(text),
            _ => estimate_tokens(&value.to_string()),
        }
    }
}

/// A value of a request, or of anything else.
fn any_value() -> impl Strategy<Value = Value> {
    let names = [
        "system",
        "messages",
        "tools",
        "content",
        "name",
        "description",
        "input_schema",
        "type",
        "text",
        "input",
        "source",
        "data",
        "role",
        "cache_control",
    ];
    let words = ["text", "image", "document", "thinking", "tool_use", "tool_result", "content"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(words.to_vec()).prop_map(Value::from),
        "[a-c\"\\\\\n\u{1}é好🙂]{0,9}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((select(names.to_vec()), inner), 0..7).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn the_estimate_is_the_one_of_a_tree(
        messages in vec(any_value(), 0..4), system in any_value(), tools in vec(any_value(), 0..3),
    ) {
        let request = serde_json::json!({"messages": messages, "system": system, "tools": tools});
        let text = serde_json::to_string_pretty(&request).unwrap();
        // Read again: a number may come out a little different from what was written.
        let request = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(count_tokens(text.as_bytes()).ok(), by_tree::count(&request));
    }
}
