//! The JSON parts of binary frames.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::from_worker::TokenCounts;

/// Headers of a JSON message: lower-cased names, one value each.
pub type Headers = BTreeMap<String, String>;

/// Headers as pairs, with their order and repetitions. Values are text from [`header_text`].
pub type HeaderPairs = Vec<(String, String)>;

/// A request without its body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHead {
    /// The job, as in logs and in `cancel`.
    pub request_id: String,
    /// The model asked for.
    pub model: String,
    /// The path, with its query, below the backend's base address.
    pub endpoint_path: String,
    /// Whether the client asked for a stream.
    pub is_streaming: bool,
    /// The headers to pass on.
    #[serde(default)]
    pub headers: HeaderPairs,
    /// The length of the whole body in bytes, over all its pieces.
    pub body_len: u64,
}

/// The head of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseHead {
    /// The backend's HTTP status.
    pub status_code: u16,
    /// The backend's headers.
    #[serde(default)]
    pub headers: HeaderPairs,
}

/// The end of an answer. On the wire an empty payload when nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseEnd {
    /// Token counts, when the worker knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_counts: Option<TokenCounts>,
}

/// Why a job has failed at its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFailure {
    /// The failure's code.
    pub code: FailureCode,
    /// A description of the failure, for people.
    pub message: String,
}

/// The kind of a job's failure. An unknown code is kept as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureCode {
    /// No connection to the backend.
    BackendUnreachable,
    /// The backend was silent for too long.
    BackendTimeout,
    /// The backend ended in the middle of its answer, or did not speak HTTP.
    BackendBroke,
    /// The job was canceled, as asked.
    Canceled,
    /// The worker is draining and takes nothing new.
    Draining,
    /// The machine cannot run the model now; others it may.
    EngineFailed,
    /// The request cannot be sent to a backend.
    BadRequest,
    /// Any other code.
    Other(String),
}

impl FailureCode {
    /// The code on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::BackendUnreachable => "backend_unreachable",
            Self::BackendTimeout => "backend_timeout",
            Self::BackendBroke => "backend_broke",
            Self::Canceled => "canceled",
            Self::Draining => "draining",
            Self::EngineFailed => "engine_failed",
            Self::BadRequest => "bad_request",
            Self::Other(code) => code,
        }
    }
}

impl From<String> for FailureCode {
    fn from(code: String) -> Self {
        match code.as_str() {
            "backend_unreachable" => Self::BackendUnreachable,
            "backend_timeout" => Self::BackendTimeout,
            "backend_broke" => Self::BackendBroke,
            "canceled" => Self::Canceled,
            "draining" => Self::Draining,
            "engine_failed" => Self::EngineFailed,
            "bad_request" => Self::BadRequest,
            _ => Self::Other(code),
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FailureCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// A header value as text: each byte becomes the character of its number (Latin-1), so that
/// values of any encoding pass unchanged. [`header_bytes`] undoes it.
pub fn header_text(value: &[u8]) -> String {
    // Nearly all values are ASCII, which is copied whole.
    if let (true, Ok(text)) = (value.is_ascii(), std::str::from_utf8(value)) {
        return text.to_owned();
    }
    value.iter().map(|&byte| char::from(byte)).collect()
}

/// The bytes of a header value that [`header_text`] wrote. Text that it cannot have written, with
/// characters above U+00FF, is taken as UTF-8.
pub fn header_bytes(text: &str) -> Vec<u8> {
    if text.is_ascii() {
        return text.as_bytes().to_vec();
    }
    let latin: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    latin.unwrap_or_else(|_| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn header_values_that_are_no_text_pass_unchanged() {
        let value = b"caf\xe9 \xff\x00";
        assert_eq!(header_text(value), "caf\u{e9} \u{ff}\0");
        assert_eq!(header_bytes(&header_text(value)), value);
        assert_eq!(header_bytes("\u{4e2d}\u{e9}"), "\u{4e2d}\u{e9}".as_bytes());
    }

    #[test]
    fn codes_read_back_and_unknown_ones_stay() {
        let codes =
            ["backend_unreachable", "backend_timeout", "backend_broke", "canceled", "draining"];
        for code in codes.into_iter().chain(["bad_request", "engine_failed"]) {
            let read = FailureCode::from(code.to_owned());
            assert!(!matches!(read, FailureCode::Other(_)), "{code}");
            assert_eq!(read.to_string(), code);
        }
        let unknown = FailureCode::from("gpu_melted".to_owned());
        assert_eq!(unknown, FailureCode::Other("gpu_melted".to_owned()));
    }

    proptest! {
        #[test]
        fn any_header_value_comes_back(value: Vec<u8>) {
            prop_assert_eq!(header_bytes(&header_text(&value)), value);
        }
    }
}
