//! Single chunks of Chat Completions: facts about a chunk that is passed on, and whole answers in
//! the form of a chunk.

use std::ops::Range;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::peek::span;
use crate::{
    failure::Failure,
    json::{self, lenient::Text},
};

/// The fields of a chunk that matter for passing it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Whether it has choices: a chunk without choices carries usage, or nothing.
    pub has_choices: bool,
    /// Whether it has a reason why the answer ended.
    pub finishes: bool,
    /// Whether it carries usage.
    pub tells_usage: bool,
    /// Where the value of `model` is.
    pub model_span: Option<Range<usize>>,
}

/// Why a text is not a chunk that can be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadChunk {
    /// It is not a chunk.
    #[error("what came is no chunk of an answer: {0}")]
    NoChunk(String),
    /// It is an error.
    #[error("{}", .0.message)]
    Failed(Failure),
}

/// Reads the facts of a chunk.
///
/// # Errors
/// [`BadChunk`] when it is not a chunk, or an error.
pub fn look(chunk: &str) -> Result<Look, BadChunk> {
    if !chunk.trim_ascii_start().starts_with('{') {
        return Err(BadChunk::NoChunk("it is no JSON object".to_owned()));
    }
    let fields: Fields<'_> = serde_json::from_str(chunk).map_err(|error| no_chunk(&error))?;
    let choices = fields.choices.unwrap_or_default();
    let bare = choices.is_empty() && !fields.message.is_empty();
    if fields.error.is_some() || &*fields.object == "error" || bare {
        return Err(BadChunk::Failed(Failure::read(chunk.as_bytes())));
    }
    Ok(Look {
        has_choices: !choices.is_empty(),
        finishes: choices.iter().any(|choice| !choice.finish_reason.is_empty()),
        tells_usage: fields.usage.is_some(),
        model_span: fields.model.map(|model| span(chunk, model)),
    })
}

/// A whole answer of Chat Completions as one chunk of a stream, for readers that only read chunks.
///
/// # Errors
/// [`BadChunk`] when it is not an answer, or an error.
pub fn of_whole(whole: &str) -> Result<String, BadChunk> {
    look(whole)?;
    let mut answer: Map<String, Value> =
        serde_json::from_str(whole).map_err(|error| no_chunk(&error))?;
    answer.insert("object".to_owned(), "chat.completion.chunk".into());
    let choices = answer.get_mut("choices").and_then(Value::as_array_mut);
    let choices = choices.filter(|choices| !choices.is_empty());
    let none = || BadChunk::NoChunk("it has no choices".to_owned());
    choices.ok_or_else(none)?.iter_mut().for_each(speak_as_chunk);
    Ok(json::write(&answer))
}

fn speak_as_chunk(choice: &mut Value) {
    let Some(choice) = choice.as_object_mut() else { return };
    let Some(mut message) = choice.remove("message") else { return };
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        if let Some(call) = call.as_object_mut() {
            call.insert("index".to_owned(), index.into());
        }
    }
    choice.insert("delta".to_owned(), message);
}

fn no_chunk(error: &serde_json::Error) -> BadChunk {
    BadChunk::NoChunk(error.to_string())
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Text<'a>,
    #[serde(borrow, default)]
    message: Text<'a>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_purpose_of_a_chunk_is_recognised() {
        let text =
            r#" {"model":"a\/b","choices":[{"delta":{"content":"x"},"finish_reason":null}]}"#;
        let seen = look(text).unwrap();
        assert!(seen.has_choices && !seen.finishes && !seen.tells_usage);
        assert_eq!(&text[seen.model_span.unwrap()], r#""a\/b""#);
        let last = look(r#"{"choices":[{"finish_reason":"stop"}],"usage":null}"#).unwrap();
        assert!(last.finishes && !last.tells_usage);
        let usage = look(r#"{"choices":[],"usage":{"prompt_tokens":1}}"#).unwrap();
        assert!(!usage.has_choices && usage.tells_usage);
        assert!(look(r#"{"error":null,"choices":[{}]}"#).is_ok());
    }

    #[test]
    fn errors_and_what_is_no_object_are_no_chunks() {
        for error in [
            r#"{"error":{"message":"boom"}}"#,
            r#"{"object":"error","message":"boom"}"#,
            r#"{"message":"boom"}"#,
        ] {
            assert_eq!(look(error).unwrap_err().to_string(), "boom", "{error}");
        }
        for other in ["", "null", "[]", "[null]", "\"x\"", "{\"choices\":", "{\"choices\":1}"] {
            assert!(matches!(look(other), Err(BadChunk::NoChunk(_))), "{other}");
        }
    }

    #[test]
    fn a_whole_answer_is_one_chunk() {
        let whole = json!({"id": "x", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi",
                "tool_calls": [{"id": "a"}, {"id": "b"}]}, "finish_reason": "stop"}],
            "usage": {"total_tokens": 2}});
        let chunk: Value = serde_json::from_str(&of_whole(&whole.to_string()).unwrap()).unwrap();
        let expected = json!({"id": "x", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi",
                "tool_calls": [{"id": "a", "index": 0}, {"id": "b", "index": 1}]}, "finish_reason": "stop"}],
            "usage": {"total_tokens": 2}});
        assert_eq!(chunk, expected);
        assert!(of_whole(r#"{"choices":[]}"#).is_err());
        assert!(of_whole(r#"{"error":"x"}"#).is_err());
    }
}
