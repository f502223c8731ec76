//! Filters the head of a participant's answer.
//!
//! A participant is a stranger to the client, but its answer comes from the server's own origin. So
//! only the headers that an answer needs are passed on, and nothing that a browser would show as a
//! page.

use bytes::Bytes;
use http::{HeaderValue, header};
use scheduler::Head;

use crate::head::{self, BadHead};

/// The headers that are passed on, without lengths and encodings: participants report those of
/// their backend's answer, not those of the bytes that they send.
const PASSED: [&str; 4] = ["content-type", "cache-control", "retry-after", "x-request-id"];

/// The content types that are passed on.
const SHOWN: [&str; 5] = [
    "application/json",
    "text/event-stream",
    "text/plain",
    "application/x-ndjson",
    "application/problem+json",
];

/// The head of an answer, if it can be sent to a client.
pub(super) fn head<'a>(
    status: u16,
    headers: impl Iterator<Item = (&'a str, Vec<u8>)> + Clone,
) -> Result<Head, BadHead> {
    let passed = |name: &str| PASSED.iter().any(|passed| name.eq_ignore_ascii_case(passed));
    let mut head = head::head(status, headers.filter(move |(name, _)| passed(name)), Bytes::from)?;
    if !head.headers.get(header::CONTENT_TYPE).is_none_or(is_shown) {
        let bytes = HeaderValue::from_static("application/octet-stream");
        head.headers.insert(header::CONTENT_TYPE, bytes);
    }
    Ok(head)
}

fn is_shown(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    SHOWN.iter().any(|shown| kind.trim().eq_ignore_ascii_case(shown))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn of(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes().to_vec()));
        head(200, headers).unwrap().headers
    }

    #[test]
    fn only_headers_that_an_answer_needs_are_passed_on() {
        let headers = of(&[
            ("Content-Type", "text/event-stream; charset=utf-8"),
            ("content-length", "12"),
            ("content-encoding", "gzip"),
            ("location", "http://elsewhere/"),
            ("set-cookie", "a=b"),
            ("Retry-After", "3"),
        ]);
        assert_eq!(headers["content-type"], "text/event-stream; charset=utf-8");
        assert_eq!((headers.len(), &headers["retry-after"]), (2, &HeaderValue::from_static("3")));
    }

    #[test]
    fn nothing_is_passed_on_as_a_page() {
        for page in ["text/html", "TEXT/HTML; charset=utf-8", "image/svg+xml", "x", ""] {
            assert_eq!(of(&[("content-type", page)])["content-type"], "application/octet-stream");
        }
        assert_eq!(of(&[("content-type", "Application/JSON")])["content-type"], "Application/JSON");
        assert!(of(&[]).is_empty());
    }
}
