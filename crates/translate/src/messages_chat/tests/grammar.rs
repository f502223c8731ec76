//! The grammar of a stream of a message, checked event by event.

use serde_json::Value;

/// The content of a well-formed stream.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ParsedStream {
    /// Each block: its start, with the text of its deltas.
    pub(super) blocks: Vec<(Value, String)>,
    /// The `message_delta`, or the error.
    pub(super) last: Value,
}

/// Reads a whole stream.
///
/// # Panics
/// Where it is not well-formed: `message_start`, blocks numbered from 0 that never overlap, with
/// deltas of their kind, then `message_delta` and `message_stop`; or an `error` anywhere, and
/// nothing after it.
pub(super) fn read(stream: &str) -> ParsedStream {
    let mut parsed = ParsedStream::default();
    let mut events = stream.split_terminator("\n\n").map(event).peekable();
    assert!(stream.is_empty() || stream.ends_with("\n\n"), "{stream:?}");
    if events.peek().is_some_and(|event| event["type"] == "error") {
        parsed.last = events.next().unwrap();
        assert_eq!(events.next(), None);
        return parsed;
    }
    let start = events.next().unwrap();
    assert_eq!(start["type"], "message_start");
    assert_eq!(start["message"]["content"], Value::Array(vec![]));
    let mut open = false;
    while let Some(event) = events.next() {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert!(!open && event["index"] == parsed.blocks.len(), "{event}");
                parsed.blocks.push((event["content_block"].clone(), String::new()));
                open = true;
            }
            "content_block_delta" => {
                assert!(open && event["index"] == parsed.blocks.len() - 1, "{event}");
                take(parsed.blocks.last_mut().unwrap(), &event["delta"]);
            }
            "content_block_stop" => {
                assert!(open && event["index"] == parsed.blocks.len() - 1, "{event}");
                open = false;
            }
            "message_delta" => {
                assert!(!open, "{event}");
                parsed.last = event;
                assert_eq!(events.next().unwrap()["type"], "message_stop");
                assert_eq!(events.next(), None);
                return parsed;
            }
            "error" => {
                parsed.last = event;
                assert_eq!(events.next(), None);
                return parsed;
            }
            other => panic!("{other} has no place here"),
        }
    }
    panic!("the stream has no end: {stream}");
}

fn take(block: &mut (Value, String), delta: &Value) {
    let (start, text) = block;
    let field = match (start["type"].as_str().unwrap(), delta["type"].as_str().unwrap()) {
        ("text", "text_delta") => "text",
        ("thinking", "thinking_delta") => "thinking",
        ("thinking", "signature_delta") => return assert_eq!(delta["signature"], ""),
        ("tool_use", "input_json_delta") => "partial_json",
        other => panic!("{other:?} do not go together"),
    };
    text.push_str(delta[field].as_str().unwrap());
}

/// The data of an event, which repeats its name.
fn event(text: &str) -> Value {
    let (name, data) = text.split_once('\n').unwrap();
    let value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(value["type"], name.strip_prefix("event: ").unwrap());
    value
}
