//! The heads of binary frames: JSON in version 2 of the form, fields in version 3.

use std::{collections::BTreeMap, fmt};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    fields::{HeaderFields, put, take},
    from_worker::TokenCounts,
};

/// The size of a request's head beside its texts and headers: flag, length of the body, and the
/// lengths of three texts.
const FIXED: usize = 1 + 8 + 3 * 4;

/// Headers of a JSON message: lower-cased names, one value each.
pub type Headers = BTreeMap<String, String>;

/// A request without its body. To write one, its texts can be borrowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHead<Text = String> {
    /// The job's id, used in logs and in `cancel`.
    pub request_id: Text,
    /// The model asked for.
    pub model: Text,
    /// The path, with its query, below the backend's base address.
    pub endpoint_path: Text,
    /// Whether the client asked for a stream.
    pub is_streaming: bool,
    /// The headers to pass on.
    #[serde(default)]
    pub headers: HeaderFields,
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
    pub headers: HeaderFields,
}

impl<Text: AsRef<str>> RequestHead<Text> {
    /// Its length as fields.
    pub(super) fn len(&self) -> usize {
        let texts = [&self.request_id, &self.model, &self.endpoint_path];
        let texts: usize = texts.map(|text| text.as_ref().len()).iter().sum();
        FIXED + texts + self.headers.as_bytes().len()
    }

    /// Writes the head as fields.
    pub(super) fn write(&self, out: &mut BytesMut) {
        out.put_u8(self.is_streaming.into());
        out.put_u64(self.body_len);
        for text in [&self.request_id, &self.model, &self.endpoint_path] {
            put(out, text.as_ref().as_bytes());
        }
        out.put_slice(self.headers.as_bytes());
    }
}

impl RequestHead {
    /// Reads what [`RequestHead::write`] has written; `None` for anything else.
    pub(super) fn read(mut fields: Bytes) -> Option<Self> {
        let is_streaming = match fields.try_get_u8().ok()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let body_len = fields.try_get_u64().ok()?;
        let mut text = || String::from_utf8(take(&mut fields)?.into()).ok();
        let (request_id, model, endpoint_path) = (text()?, text()?, text()?);
        let headers = HeaderFields::read(fields)?;
        Some(Self { request_id, model, endpoint_path, is_streaming, headers, body_len })
    }
}

impl ResponseHead {
    /// Writes the head as fields.
    pub(super) fn write(&self, out: &mut BytesMut) {
        out.put_u16(self.status_code);
        out.put_slice(self.headers.as_bytes());
    }

    /// Its length as fields.
    pub(super) fn len(&self) -> usize {
        size_of::<u16>() + self.headers.as_bytes().len()
    }

    /// Reads what [`ResponseHead::write`] has written; `None` for anything else.
    pub(super) fn read(mut fields: Bytes) -> Option<Self> {
        let status_code = fields.try_get_u16().ok()?;
        Some(Self { status_code, headers: HeaderFields::read(fields)? })
    }
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
    /// The machine cannot run this model now, but perhaps others.
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
    // Nearly all values are ASCII, which is copied at once.
    if let (true, Ok(text)) = (value.is_ascii(), std::str::from_utf8(value)) {
        return text.to_owned();
    }
    value.iter().map(|&byte| char::from(byte)).collect()
}

/// The bytes of a header value that [`header_text`] wrote. Text with characters above U+00FF, which
/// it cannot have written, is taken as UTF-8.
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
