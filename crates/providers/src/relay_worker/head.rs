//! Statuses and headers of answers, checked and cleaned.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use protocol::headers::{is_hop_by_hop, named_by_connection, stays_at_provider};
use scheduler::Head;

/// The head of an answer, if its status is one that a client can be sent.
pub(super) fn head<'a>(
    status: u16,
    headers: impl Iterator<Item = (&'a str, Vec<u8>)> + Clone,
) -> Option<Head> {
    let status = StatusCode::from_u16(status).ok().filter(|s| !s.is_informational())?;
    Some(Head { status, headers: clean(headers) })
}

/// What may reach the client: nothing of the worker's own connections, nothing malformed.
fn clean<'a>(headers: impl Iterator<Item = (&'a str, Vec<u8>)> + Clone) -> HeaderMap {
    let named: HashSet<String> = headers
        .clone()
        .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
        .flat_map(|(_, value)| {
            let value = String::from_utf8_lossy(&value).into_owned();
            named_by_connection(&value).collect::<Vec<_>>()
        })
        .collect();
    let mut cleaned = HeaderMap::new();
    for (name, value) in headers {
        let Ok(name) = HeaderName::try_from(name) else { continue };
        let dropped = is_hop_by_hop(name.as_str())
            || stays_at_provider(name.as_str())
            || named.contains(name.as_str());
        if let (false, Ok(value)) = (dropped, HeaderValue::try_from(value)) {
            cleaned.append(name, value);
        }
    }
    cleaned
}

/// The head of a stream whose worker tells its status only at the end (walkthrough 3).
pub(super) fn assumed_stream() -> Head {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Head { status: StatusCode::OK, headers: headers.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_are_dropped() {
        let given = [
            ("Content-Type", "application/json"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close, x-hop"),
            ("X-Hop", "1"),
            ("Set-Cookie", "a=b"),
            ("bad name", "x"),
            ("x-back", "bad\nvalue"),
            ("x-many", "1"),
            ("x-many", "2"),
        ];
        let given = given.iter().map(|(name, value)| (*name, value.as_bytes().to_vec()));
        let head = head(429, given).unwrap();
        assert_eq!(head.status, 429);
        let names: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["content-type", "x-many"]);
        assert_eq!(head.headers.get_all("x-many").iter().count(), 2);
    }

    #[test]
    fn impossible_statuses_are_refused() {
        for status in [0, 99, 100, 101, 1000] {
            assert!(head(status, std::iter::empty()).is_none(), "{status}");
        }
    }
}
