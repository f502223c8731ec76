//! Gemini's API: answers whole or as events, and streams that are a JSON array.

use base::{Endpoint, JobId};
use bytes::Bytes;
use http::Uri;
use protocol::{
    gemini::{self, Call, Problem},
    sse::Boundary,
};
use scheduler::Head;

use super::Shape;
use crate::{error::ApiError, head, paths};

/// Gemini's API, except for its streams that are JSON arrays.
pub(super) struct Gemini(pub(super) Endpoint);

/// A stream that is a JSON array, each of whose elements is a line.
pub(super) struct GeminiArray;

impl Shape for Gemini {
    fn endpoint(&self) -> Endpoint {
        self.0
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        error_body(error)
    }

    fn error_event(&self, error: &ApiError, _: JobId, _: u64) -> String {
        format!("data: {}\r\n\r\n", error_body(error))
    }

    /// Empty lines, because Google's client for Python takes a comment for a part of the answer.
    fn keepalive(&self) -> &'static [u8] {
        b"\r\n\r\n"
    }

    fn comment(&self, _: &str) -> Option<String> {
        None
    }

    fn waiting(&self, _: &str) -> String {
        "\r\n\r\n".to_owned()
    }

    fn complete(&self, uri: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
        complete(uri, body)
    }
}

impl Shape for GeminiArray {
    fn endpoint(&self) -> Endpoint {
        Endpoint::GeminiGenerate
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        error_body(error)
    }

    /// The last element, and the end of the array. [`Self::closing`] has written the bracket or comma before it.
    fn error_event(&self, error: &ApiError, _: JobId, _: u64) -> String {
        format!("{}\n]\n", error_body(error))
    }

    fn keepalive(&self) -> &'static [u8] {
        b"\n"
    }

    fn comment(&self, _: &str) -> Option<String> {
        None
    }

    fn waiting(&self, _: &str) -> String {
        "\n".to_owned()
    }

    fn may_add(&self, at: &Boundary) -> bool {
        at.at_line_start()
    }

    /// The array has no empty lines, so only the place before its first byte is one where an event could start.
    fn closing(&self, at: &Boundary) -> &'static [u8] {
        if at.at_event_start() { b"[" } else { b"," }
    }

    fn is_stream(&self, head: &Head) -> bool {
        head.status.is_success() && head::is_json(head)
    }

    fn stream_type(&self) -> &'static str {
        "application/json"
    }

    fn complete(&self, uri: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
        complete(uri, body)
    }
}

fn error_body(error: &ApiError) -> String {
    gemini::error_body(&Problem {
        status: error.status.as_u16(),
        message: &error.message,
        field: error.param.as_deref(),
        retry_after: error.retry_after,
    })
}

fn complete(uri: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
    let Some(call) = Call::of(paths::path(uri), uri.query()) else { return Ok(body) };
    Ok(gemini::complete(&body, &call)?)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::error::Kind;

    #[test]
    fn an_array_that_breaks_off_is_whole_wherever_that_happens() {
        let error = ApiError::new(StatusCode::BAD_GATEWAY, Kind::Server, "gone");
        for before in ["", "[{\"a\":1}\n", "[{\"a\":1}\n,{\"b\":2}\n"] {
            let mut at = Boundary::new();
            at.feed(before.as_bytes());
            assert!(GeminiArray.may_add(&at));
            let closing = String::from_utf8_lossy(GeminiArray.closing(&at));
            let event = GeminiArray.error_event(&error, JobId::from_random(0), 0);
            let whole = format!("{before}\n{closing}{event}");
            let elements: Vec<serde_json::Value> = serde_json::from_str(&whole).unwrap();
            assert_eq!(elements.last().unwrap()["error"]["status"], "UNAVAILABLE");
        }
    }

    #[test]
    fn a_path_completes_the_body() {
        let uri = Uri::from_static("/rooms/AB12CD/v1beta/models/m:streamGenerateContent?alt=sse");
        let body = Gemini(Endpoint::GeminiGenerate).complete(&uri, Bytes::from_static(b"{}"));
        assert_eq!(body.unwrap(), r#"{"model":"m","stream":true}"#);
        let other = Bytes::from_static(br#"{"model":"n"}"#);
        let bad = GeminiArray.complete(&uri, other).unwrap_err();
        assert_eq!((bad.status.as_u16(), bad.param.as_deref()), (400, Some("model")));
    }
}
