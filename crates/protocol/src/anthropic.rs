//! The Messages API: its errors, and the event that keeps its streams open.

use serde::Serialize;

/// The event that keeps a silent stream open. Write it only between events.
pub const PING: &[u8] = b"event: ping\ndata: {\"type\": \"ping\"}\n\n";

/// The body of an error answer. `kind` is one of the API's words, as `overloaded_error`.
pub fn error_body(kind: &str, message: &str, request_id: &str) -> String {
    let error = ErrorDetail { kind, message };
    crate::json::write(&ErrorBody { kind: "error", error, request_id })
}

/// The event that ends a stream that has failed.
pub fn error_event(kind: &str, message: &str, request_id: &str) -> String {
    format!("event: error\ndata: {}\n\n", error_body(kind, message, request_id))
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    error: ErrorDetail<'a>,
    request_id: &'a str,
}

#[derive(Serialize)]
struct ErrorDetail<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"queue \"full\"\n"},"request_id":"r-1"}"#;

    #[test]
    fn errors_have_the_shape_of_the_api() {
        assert_eq!(error_body("overloaded_error", "queue \"full\"\n", "r-1"), BODY);
        let event = error_event("overloaded_error", "queue \"full\"\n", "r-1");
        assert_eq!(event, format!("event: error\ndata: {BODY}\n\n"));
    }

    #[test]
    fn a_ping_is_a_whole_event() {
        assert!(crate::sse::looks_like_sse(PING) && PING.ends_with(b"\n\n"));
    }
}
