//! Reads messages and describes the faults of unreadable ones.

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};
use serde_json::value::RawValue;

use crate::{
    json::clip,
    relay::decode::{MessageError, Problem as Envelope, kind_of},
};

/// The most bytes of a stranger's input that an error repeats.
const MAX_REPEATED: usize = 64;
/// The longest path of a field in an error, in bytes.
const MAX_FIELD: usize = 128;
/// The longest explanation in an error, in bytes.
const MAX_WHY: usize = 300;

/// A message that could not be read, with the fields that could. Its sender gets an error as the
/// answer, and keeps the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", About(.kind.as_deref(), .problem))]
pub struct BadMessage {
    /// The message's `type`, cut to 64 bytes.
    pub kind: Option<String>,
    /// The message's `request_id`, unless it is longer than 256 bytes.
    pub request_id: Option<String>,
    /// The fault.
    pub problem: Problem,
}

/// The fault of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not JSON, or cut short; with the line and column.
    #[error("the message is not JSON: {0}")]
    NotJson(String),
    /// JSON, but not an object; with the `type` of a message as an example.
    #[error("the message is not a JSON object; send one such as {{\"type\":\"{0}\"}}")]
    NotAnObject(&'static str),
    /// No `type`, or one that is not a string.
    #[error("the message has no `type` that is a string")]
    NoType,
    /// A `type` that this end does not know.
    #[error("unknown message type {0:?}")]
    UnknownType(String),
    /// A field is missing, doubled, of the wrong type, or too long.
    #[error("{}{why}", Field(field))]
    WrongField {
        /// Its path, such as `working_dir` or `tags[2]`; empty when it is unknown.
        field: String,
        /// Its fault.
        why: String,
    },
}

/// One of the lists of messages.
pub(super) trait Message: Sized {
    /// The `type` of the message that errors show as an example.
    const EXAMPLE: &'static str;

    fn read(kind: &str, text: &str) -> Option<Result<Self, Wrong>>;
}

/// The fields of a message that has none.
#[derive(Deserialize)]
pub(super) struct Nothing {}

/// Why fields could not be read.
pub(super) struct Wrong {
    path: String,
    error: serde_json::Error,
}

/// The fields of a message whose type is known.
pub(super) fn fields<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Wrong> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        Wrong { path, error: error.into_inner() }
    })?;
    json.end().map_err(|error| Wrong { path: String::new(), error })?;
    Ok(read)
}

/// Reads a message within other JSON.
pub(super) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Message,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    decode(raw.get()).map_err(D::Error::custom)
}

/// Reads a message of the list `T`.
pub(super) fn decode<T: Message>(text: &str) -> Result<T, BadMessage> {
    let kind = kind_of(text).map_err(|error| BadMessage::of(error, T::EXAMPLE))?;
    match T::read(&kind, text) {
        Some(Ok(message)) => Ok(message),
        Some(Err(wrong)) => Err(BadMessage::new(text, wrong.problem(text))),
        None => {
            let kind = clip(&kind, MAX_REPEATED).to_owned();
            Err(BadMessage::new(text, Problem::UnknownType(kind)))
        }
    }
}

/// Reads a message of the list `T`. A message of an unknown `type` is ignored if it is JSON, and
/// gives that `type`, cut to 64 bytes.
pub(super) fn decode_known<T: Message>(text: &str) -> Result<Result<T, String>, BadMessage> {
    match decode(text) {
        Ok(message) => Ok(Ok(message)),
        Err(BadMessage { problem: Problem::UnknownType(kind), .. }) => {
            serde_json::from_str::<IgnoredAny>(text)
                .map(|_| Err(kind))
                .map_err(|error| BadMessage::new(text, not_json(&error)))
        }
        Err(bad) => Err(bad),
    }
}

/// The fault of a message that is longer than the `max` bytes that a member may send.
pub(super) fn too_long(text: &str, max: usize) -> BadMessage {
    let why = format!("the message is longer than {max} bytes");
    BadMessage::new(text, Problem::WrongField { field: String::new(), why })
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::NotJson(shown(&error.to_string(), MAX_WHY))
}

impl BadMessage {
    fn new(text: &str, problem: Problem) -> Self {
        Self { problem, ..Self::of(MessageError::new(text, Envelope::NoType), "") }
    }

    fn of(error: MessageError, example: &'static str) -> Self {
        let problem = match error.problem {
            Envelope::NotJson(why) => Problem::NotJson(why),
            Envelope::NotAnObject => Problem::NotAnObject(example),
            Envelope::NoType => Problem::NoType,
            Envelope::UnknownType => Problem::UnknownType(error.kind.clone().unwrap_or_default()),
            Envelope::BadField(why) => Problem::WrongField { field: String::new(), why },
        };
        Self { kind: error.kind, request_id: error.request_id, problem }
    }
}

impl Wrong {
    /// `text` is the whole message. Some wrong values, such as `true` for a name, and deeply nested
    /// ones look like bad JSON to the parser.
    fn problem(&self, text: &str) -> Problem {
        let whole = self.error.to_string();
        let words = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(words, _)| words);
        if self.error.is_data() {
            return wrong_field(&self.path, words);
        }
        if serde_json::from_str::<IgnoredAny>(text).is_ok() {
            return wrong_field(&self.path, &format!("not a value that it can have ({words})"));
        }
        not_json(&self.error)
    }
}

fn wrong_field(path: &str, words: &str) -> Problem {
    let (field, why) = match missing(words) {
        Some((field, why)) => (joined(path, field), why.to_owned()),
        None => (joined(path, ""), in_words(words)),
    };
    Problem::WrongField { field: shown(&field, MAX_FIELD), why }
}

/// The missing or duplicate field, and which of the two it is. It is in the error's text, but not
/// in its path.
fn missing(words: &str) -> Option<(&str, &'static str)> {
    let named = |prefix| words.strip_prefix(prefix)?.strip_suffix('`');
    named("missing field `")
        .map(|field| (field, "missing"))
        .or_else(|| named("duplicate field `").map(|field| (field, "there twice")))
}

fn joined(path: &str, field: &str) -> String {
    match (path, field) {
        ("." | "", field) => field.to_owned(),
        (path, "") => path.to_owned(),
        (path, field) => format!("{path}.{field}"),
    }
}

/// The error text without the value, which may be long. It uses JSON's type names.
fn in_words(words: &str) -> String {
    let Some((found, expected)) = words.rsplit_once(", expected ") else {
        return shown(words, MAX_WHY);
    };
    let found = found.replace("invalid type: map", "invalid type: object");
    let found = found.replace("invalid type: sequence", "invalid type: list");
    let found = shown(&found, MAX_REPEATED * 2);
    format!("{found}, expected {}", clip(as_json(expected), MAX_WHY / 2))
}

/// The beginning of a text with parts from a stranger, made safe for a terminal.
fn shown(text: &str, max: usize) -> String {
    let escaped = |character: char| match character {
        control if control.is_control() => control.escape_default().to_string(),
        other => other.to_string(),
    };
    clip(text, max).chars().map(escaped).collect()
}

fn as_json(expected: &str) -> &str {
    match expected {
        "u64" => "a whole number that is not negative",
        "u32" => "a whole number from 0 to 4294967295",
        "u16" => "a whole number from 0 to 65535",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        structure if structure.starts_with("struct ") => "an object",
        other => other,
    }
}

/// The subject of an error, before its fault.
struct About<'a>(Option<&'a str>, &'a Problem);

impl std::fmt::Display for About<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0, self.1) {
            (Some(kind), Problem::WrongField { .. }) => write!(f, "`{}`: ", kind.escape_debug()),
            _ => Ok(()),
        }
    }
}

struct Field<'a>(&'a str);

impl std::fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            "" => Ok(()),
            field => write!(f, "field `{field}`: "),
        }
    }
}
