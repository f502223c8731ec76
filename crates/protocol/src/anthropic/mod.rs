//! The Messages API: its errors, the event that keeps its streams open, and how large a request is.

mod count;

use serde::Serialize;

pub use count::count_tokens;

/// The header by which a request names the version of the API. Anthropic's servers demand it.
pub const VERSION_HEADER: &str = "anthropic-version";

/// The version that Warren's own requests name. There has been no later one.
pub const VERSION: &str = "2023-06-01";

/// The event that keeps a silent stream open. Write it only between events.
pub const PING: &[u8] = b"event: ping\ndata: {\"type\": \"ping\"}\n\n";

/// The API's error type for this HTTP status.
pub const fn error_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        _ => "api_error",
    }
}

/// The HTTP status of an error of this type.
pub fn error_status(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "overloaded_error" => 529,
        "timeout_error" => 504,
        _ => 500,
    }
}

/// The body of an error answer. `kind` is one of the API's error types, such as `overloaded_error`.
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
    fn a_word_and_its_status_are_the_same_thing() {
        for status in [400, 401, 402, 403, 404, 413, 429, 500, 504, 529] {
            assert_eq!(error_status(error_kind(status)), status);
        }
        assert_eq!(
            [error_kind(422), error_kind(503)],
            ["invalid_request_error", "overloaded_error"]
        );
        assert_eq!([error_kind(418), error_kind(502)], ["invalid_request_error", "api_error"]);
    }

    #[test]
    fn a_ping_is_a_whole_event() {
        assert!(crate::sse::looks_like_sse(PING) && PING.ends_with(b"\n\n"));
    }
}
