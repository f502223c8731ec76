//! Reads and writes lines of JSON.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The text at a JSON pointer; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer, as an owned string; empty if there is none.
pub(crate) fn owned(value: &Value, pointer: &str) -> String {
    text(value, pointer).to_owned()
}

/// The number at a JSON pointer; 0 if there is none.
pub(crate) fn number(value: &Value, pointer: &str) -> u64 {
    let found = value.pointer(pointer);
    let whole = found.and_then(Value::as_u64);
    // Some programs report counts as fractions.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast saturates"
    )]
    whole.or_else(|| found.and_then(Value::as_f64).map(|fraction| fraction as u64)).unwrap_or(0)
}

/// The value at a JSON pointer; null if there is none.
pub(crate) fn part(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or(Value::Null)
}

/// The array at a JSON pointer; empty if there is none.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// A value as text for people: text unchanged, blocks of text joined, null as no text, all else as JSON.
pub(crate) fn readable(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(block).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

fn block(block: &Value) -> String {
    let inner = block.get("content").filter(|inner| inner.is_object()).unwrap_or(block);
    match inner.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => inner.to_string(),
    }
}

/// A dialect's state as JSON.
pub(crate) fn to_state(state: &impl Serialize) -> Value {
    // All of it has a form in JSON, so there is no error.
    serde_json::to_value(state).unwrap_or_default()
}

/// The state in the value of [`to_state`]; `None` if the value is that of another dialect.
pub(crate) fn from_state<T: DeserializeOwned>(state: Value) -> Option<T> {
    serde_json::from_value(state).ok()
}
