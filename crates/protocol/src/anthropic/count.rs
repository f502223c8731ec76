//! How many tokens a Messages request has, estimated.

use serde_json::{Map, Value};

use crate::translate::{
    BadRequest,
    tokens::{IMAGE_TOKENS, estimate_tokens},
};

/// What a message or a tool costs beside its text: its role and its frame.
const FRAME_TOKENS: u64 = 4;

/// Estimates `input_tokens` of a body of `POST /v1/messages/count_tokens`.
///
/// Texts are counted as [`estimate_tokens`] does, tools by the text of their names, descriptions
/// and schemas, calls by their input, each picture and each document that is no text as
/// [`IMAGE_TOKENS`], and a few tokens for the frame of each message and tool. Thoughts of earlier
/// turns count nothing, as nothing is sent of them.
///
/// # Errors
/// [`BadRequest`] when the body is no JSON object with a list of `messages`.
pub fn count_tokens(body: &[u8]) -> Result<u64, BadRequest> {
    let request: Map<String, Value> = serde_json::from_slice(body).map_err(|error| BadRequest {
        param: None,
        message: format!("the request body cannot be read: {error}"),
    })?;
    let Some(messages) = request.get("messages").and_then(Value::as_array) else {
        return Err(BadRequest::new("messages", "`messages` must be a list of messages"));
    };
    let tools = request.get("tools").and_then(Value::as_array).into_iter().flatten();
    let system = request.get("system").map_or(0, content);
    Ok(system + messages.iter().map(message).sum::<u64>() + tools.map(tool).sum::<u64>())
}

fn message(message: &Value) -> u64 {
    FRAME_TOKENS + message.get("content").map_or(0, content)
}

fn tool(tool: &Value) -> u64 {
    FRAME_TOKENS
        + ["name", "description", "input_schema"].iter().map(|name| json(&tool[name])).sum::<u64>()
}

/// A string, or blocks.
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

/// A value by its text.
fn json(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        Value::String(text) => estimate_tokens(text),
        _ => estimate_tokens(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
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
}
