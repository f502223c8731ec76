//! Gemini's error envelope.

use std::time::Duration;

use serde::Serialize;

/// A problem with a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Problem<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The problem in words.
    pub message: &'a str,
    /// The field that is at fault.
    pub field: Option<&'a str>,
    /// When to try again.
    pub retry_after: Option<Duration>,
}

/// Google's word for an HTTP status.
pub const fn status_word(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 | 410 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        400..=498 => "INVALID_ARGUMENT",
        501 => "UNIMPLEMENTED",
        502 | 503 | 529 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

/// The body of an error, which is also an element of a stream. Clients look for `error` at its very beginning.
pub fn error_body(problem: &Problem<'_>) -> String {
    let Problem { status, message, field, retry_after } = *problem;
    let violation = field.map(|field| Detail::BadRequest {
        field_violations: [Violation { field, description: message }],
    });
    let retry = retry_after.map(|after| Detail::RetryInfo {
        retry_delay: format!("{}s", after.as_secs() + u64::from(after.subsec_nanos() > 0)),
    });
    let details = violation.into_iter().chain(retry).collect();
    let error = Body { code: status, message, status: status_word(status), details };
    crate::json::write(&Envelope { error })
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    details: Vec<Detail<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "@type", rename_all_fields = "camelCase")]
enum Detail<'a> {
    #[serde(rename = "type.googleapis.com/google.rpc.BadRequest")]
    BadRequest { field_violations: [Violation<'a>; 1] },
    #[serde(rename = "type.googleapis.com/google.rpc.RetryInfo")]
    RetryInfo { retry_delay: String },
}

#[derive(Serialize)]
struct Violation<'a> {
    field: &'a str,
    description: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_googles_shape() {
        let plain = Problem { status: 404, message: "no \"m\"", ..Problem::default() };
        let body =
            r#"{"error":{"code":404,"message":"no \"m\"","status":"NOT_FOUND","details":[]}}"#;
        assert_eq!(error_body(&plain), body);
        let field = Problem { status: 400, message: "x", field: Some("a.b"), ..Problem::default() };
        let detail = r#""details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"a.b","description":"x"}]}]"#;
        assert!(error_body(&field).contains(detail), "{}", error_body(&field));
        let after = Some(Duration::from_millis(1_200));
        let busy = Problem { status: 429, message: "x", retry_after: after, ..Problem::default() };
        let detail = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}"#;
        assert!(error_body(&busy).contains(detail));
    }

    #[test]
    fn each_status_has_a_word() {
        for (status, word) in [
            (400, "INVALID_ARGUMENT"),
            (401, "UNAUTHENTICATED"),
            (403, "PERMISSION_DENIED"),
            (405, "INVALID_ARGUMENT"),
            (413, "INVALID_ARGUMENT"),
            (415, "INVALID_ARGUMENT"),
            (429, "RESOURCE_EXHAUSTED"),
            (500, "INTERNAL"),
            (501, "UNIMPLEMENTED"),
            (502, "UNAVAILABLE"),
            (504, "DEADLINE_EXCEEDED"),
            (508, "INTERNAL"),
        ] {
            assert_eq!(status_word(status), word, "{status}");
        }
    }
}
