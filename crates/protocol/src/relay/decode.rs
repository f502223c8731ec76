//! Reads a tagged JSON message without buffering it, and reports the readable fields of a bad one.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::json::clip;

/// A text message that could not be read, with the fields that could. So only its job fails, and
/// not the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct MessageError {
    /// The message's `type`, cut to 64 bytes.
    pub kind: Option<String>,
    /// The message's `request_id` (`requestId` on a participant's tunnel), unless it is longer than 256 bytes.
    pub request_id: Option<String>,
    /// The fault.
    pub problem: Problem,
}

/// The fault of a text message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not JSON, or cut short.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// No `type`, or one that is not a string.
    #[error("no message type")]
    NoType,
    /// A `type` that this end does not know.
    #[error("unknown message type")]
    UnknownType,
    /// A field is missing, doubled, or of the wrong type.
    #[error("bad field: {0}")]
    BadField(String),
}

const MAX_KIND: usize = 64;
const MAX_REQUEST_ID: usize = 256;
const MAX_WORDS: usize = 200;

impl MessageError {
    pub(crate) fn new(text: &str, problem: Problem) -> Self {
        let (envelope, _) = Envelope::read(text);
        Self { kind: envelope.kind, request_id: envelope.request_id, problem }
    }
}

/// The `type` of a message. If there are several, the first counts.
pub(crate) fn kind_of(text: &str) -> Result<Cow<'_, str>, MessageError> {
    if let Some(kind) = leading_kind(text) {
        return Ok(Cow::Borrowed(kind));
    }
    let (envelope, end) = Envelope::read(text);
    match (envelope.kind, end) {
        (Some(kind), _) => Ok(Cow::Owned(kind)),
        (None, Ok(())) => Err(MessageError::new(text, Problem::NoType)),
        (None, Err(error)) if error.is_data() => Err(MessageError::new(text, Problem::NotAnObject)),
        (None, Err(error)) => Err(MessageError::new(text, Problem::NotJson(words(&error)))),
    }
}

/// The fields of a message whose type is known.
pub(crate) fn body<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, MessageError> {
    serde_json::from_str(text).map_err(|error| {
        let kind = if error.is_data() { Problem::BadField } else { Problem::NotJson };
        MessageError::new(text, kind(words(&error)))
    })
}

/// The `type` of a message in the usual form: it is the first field, and unescaped.
fn leading_kind(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("{\"type\":\"")?;
    let end = rest.bytes().take(MAX_KIND).position(|byte| byte == b'"')?;
    let kind = &rest[..end];
    let plain = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.');
    kind.bytes().all(plain).then_some(kind)
}

fn words(error: &serde_json::Error) -> String {
    clip(&error.to_string(), MAX_WORDS).to_owned()
}

/// The fields common to all messages, if readable.
#[derive(Default)]
struct Envelope {
    kind: Option<String>,
    request_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Type,
    #[serde(alias = "requestId")]
    RequestId,
    #[serde(other)]
    Other,
}

impl Envelope {
    fn read(text: &str) -> (Self, Result<(), serde_json::Error>) {
        let mut envelope = Self::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        let end = (&mut envelope).deserialize(&mut reader).and_then(|()| reader.end());
        (envelope, end)
    }

    fn take_kind(&mut self, raw: &RawValue) {
        if self.kind.is_none() {
            self.kind = string(raw).map(|kind| clip(&kind, MAX_KIND).to_owned());
        }
    }

    fn take_request_id(&mut self, raw: &RawValue) {
        if self.request_id.is_none() {
            self.request_id = string(raw).filter(|id| id.len() <= MAX_REQUEST_ID);
        }
    }
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

impl<'de> DeserializeSeed<'de> for &mut Envelope {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Envelope {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            match key {
                Key::Type => self.take_kind(map.next_value()?),
                Key::RequestId => self.take_request_id(map.next_value()?),
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::relay::{ServerMessage, WorkerMessage};

    fn worker_error(text: &str) -> MessageError {
        WorkerMessage::decode(text).unwrap_err()
    }

    #[test]
    fn an_error_says_what_could_be_read() {
        let error = worker_error(r#"{"type":"response_chunk","request_id":"r-9","chunk":5}"#);
        assert_eq!(error.kind.as_deref(), Some("response_chunk"));
        assert_eq!(error.request_id.as_deref(), Some("r-9"));
        assert!(matches!(error.problem, Problem::BadField(_)), "{error}");
    }

    #[test]
    fn a_message_cut_short_still_names_its_job() {
        let error = worker_error(r#"{"request_id":"r-9","type":"response_chunk","chunk":"da"#);
        assert_eq!(
            (error.kind, error.request_id),
            (Some("response_chunk".into()), Some("r-9".into()))
        );
        assert!(matches!(error.problem, Problem::NotJson(_)));
    }

    #[test]
    fn each_problem_has_its_name() {
        let name = |text: &str| worker_error(text).problem;
        assert_eq!(name(r#"{"type":"dance","request_id":1}"#), Problem::UnknownType);
        assert_eq!(name(r#"{"type":"ping"}"#), Problem::UnknownType);
        assert_eq!(name("{}"), Problem::NoType);
        assert_eq!(name(r#"{"type":7}"#), Problem::NoType);
        assert_eq!(name("[1]"), Problem::NotAnObject);
        assert_eq!(name("null"), Problem::NotAnObject);
        assert!(matches!(name(""), Problem::NotJson(_)));
        assert!(matches!(name(r#"{"type":"pong","current_load":0}}"#), Problem::NotJson(_)));
    }

    #[test]
    fn numbers_out_of_range_are_bad_fields() {
        let max = r#""worker_name":"w","models":[],"max_concurrent""#;
        let bad = [
            format!(r#"{{"type":"register",{max}:-1}}"#),
            format!(r#"{{"type":"register",{max}:4294967296}}"#),
            format!(r#"{{"type":"register",{max}:1e400}}"#),
            format!(r#"{{"type":"register",{max}:1.5}}"#),
            r#"{"type":"register","worker_name":"w","models":null,"max_concurrent":1}"#.to_owned(),
            r#"{"type":"pong","current_load":-1}"#.to_owned(),
            r#"{"type":"pong","current_load":1,"current_load":2}"#.to_owned(),
            r#"{"type":"response_complete","request_id":"r","status_code":65536}"#.to_owned(),
            r#"{"type":"response_complete","request_id":"r","status_code":200,"headers":{"a":1}}"#
                .to_owned(),
        ];
        for text in bad {
            let problem = worker_error(&text).problem;
            assert!(matches!(problem, Problem::BadField(_) | Problem::NotJson(_)), "{text}");
        }
    }

    #[test]
    fn the_type_may_stand_anywhere_and_be_escaped() {
        let plain = WorkerMessage::decode(r#"{"type":"pong","current_load":3}"#);
        let others = [
            r#" { "current_load" : 3 , "x" : [1,{"type":"no"}], "type" : "pong" } "#,
            r#"{"t\u0079pe":"po\u006eg","current_load":3}"#,
            r#"{"type":"pong","current_load":3,"type":"register"}"#,
            r#"{ "type":"pong","current_load":3,"type":"register"}"#,
        ];
        for text in others {
            assert_eq!(WorkerMessage::decode(text), plain, "{text}");
        }
    }

    #[test]
    fn errors_stay_short_whatever_was_sent() {
        let long = "x".repeat(100_000);
        let error = worker_error(&format!(r#"{{"type":"{long}","request_id":"{long}"}}"#));
        assert_eq!(error.kind.map(|kind| kind.len()), Some(MAX_KIND));
        assert_eq!(error.request_id, None);
        let error = worker_error(&format!(r#"{{"type":"pong","current_load":"{long}"}}"#));
        assert!(error.to_string().len() < 2 * MAX_WORDS);
    }

    #[test]
    fn deep_nesting_in_unknown_fields_is_passed_over() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let text = format!(r#"{{"x":{deep},"type":"pong","current_load":3}}"#);
        assert!(WorkerMessage::decode(&text).is_ok());
    }

    proptest! {
        #[test]
        fn reading_near_json_is_stable(text in "[{}\\[\\]\":,a-z_0-9\\\\ ]{0,60}") {
            let text = format!("{{\"type\":\"pong\",\"current_load\":1{text}");
            if let Ok(message) = WorkerMessage::decode(&text) {
                prop_assert_eq!(WorkerMessage::decode(&message.encode()), Ok(message));
            }
        }

        #[test]
        fn any_text_is_an_error_and_no_panic(text: String) {
            prop_assert!(WorkerMessage::decode(&text).is_err());
            prop_assert!(ServerMessage::decode(&text).is_err());
        }
    }
}
