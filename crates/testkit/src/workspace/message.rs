//! The messages that a client hears.

use serde_json::Value;

/// How long the part of a binary frame before its text is.
const HEADER: usize = 25;

#[derive(Debug, Clone, PartialEq)]
pub enum ServerMessage {
    Message(Value),
    Output(Output),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub session: String,
    pub seq: u64,
    pub text: String,
}

impl ServerMessage {
    pub(super) fn text(text: &str) -> Self {
        Self::Message(serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}")))
    }

    pub(super) fn binary(bytes: &[u8]) -> Self {
        assert!(bytes.len() >= HEADER && bytes[0] == 1, "no output frame: {bytes:?}");
        let hex = hex::encode(&bytes[1..17]);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        let seq = bytes[17..HEADER].iter().fold(0, |seq, byte| seq << 8 | u64::from(*byte));
        let text = std::str::from_utf8(&bytes[HEADER..]).expect("output is UTF-8").to_owned();
        Self::Output(Output { session: parts.join("-"), seq, text })
    }

    pub fn as_message(&self, kind: &str) -> Option<&Value> {
        match self {
            Self::Message(message) if message["type"] == kind => Some(message),
            _ => None,
        }
    }

    pub fn kind(&self) -> &str {
        match self {
            Self::Message(message) => message["type"].as_str().unwrap_or_default(),
            Self::Output(_) => "output",
        }
    }
}
