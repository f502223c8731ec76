//! Statuses and headers of answers, checked and cleaned.

use std::collections::HashSet;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use protocol::headers::{is_hop_by_hop, named_by_connection, stays_at_provider};
use scheduler::Head;

/// The most headers that an answer may have, including those that are dropped.
const MAX_HEADERS: usize = 256;

/// How many headers the API adds to most answers, at most. The map is made with room for them.
const OF_API: usize = 8;

/// Why a head cannot be sent to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHead {
    /// An invalid HTTP status, or one that does not end a request.
    #[error("the provider sent an impossible status")]
    Status,
    /// More than [`MAX_HEADERS`].
    #[error("the provider sent more than {MAX_HEADERS} headers")]
    TooMany,
    /// A `content-length` that is not a number, or more than one.
    #[error("the provider sent an impossible content-length")]
    Length,
}

/// The head of an answer, if it can be sent to a client. `owned` turns a header's value that is
/// passed on into `Bytes`.
pub(crate) fn head<N: AsRef<[u8]>, V: AsRef<[u8]>>(
    status: u16,
    headers: impl Iterator<Item = (N, V)> + Clone,
    owned: impl Fn(V) -> Bytes,
) -> Result<Head, BadHead> {
    let status = StatusCode::from_u16(status).ok().filter(|status| !status.is_informational());
    let status = status.ok_or(BadHead::Status)?;
    let count = headers.clone().take(MAX_HEADERS + 1).count();
    if count > MAX_HEADERS {
        return Err(BadHead::TooMany);
    }
    let headers = clean(headers, count, owned)?;
    if has_possible_length(&headers) { Ok(Head { status, headers }) } else { Err(BadHead::Length) }
}

/// The headers that may reach the client, without malformed ones and those of the provider's own
/// connection.
fn clean<N: AsRef<[u8]>, V: AsRef<[u8]>>(
    headers: impl Iterator<Item = (N, V)> + Clone,
    count: usize,
    owned: impl Fn(V) -> Bytes,
) -> Result<HeaderMap, BadHead> {
    let named: HashSet<String> = headers
        .clone()
        .filter(|(name, _)| name.as_ref().eq_ignore_ascii_case(b"connection"))
        .flat_map(|(_, value)| {
            let value = String::from_utf8_lossy(value.as_ref()).into_owned();
            named_by_connection(&value).collect::<Vec<_>>()
        })
        .collect();
    let mut cleaned = HeaderMap::with_capacity(count + OF_API);
    for (name, value) in headers {
        let Ok(name) = HeaderName::from_bytes(name.as_ref()) else { continue };
        let dropped = is_hop_by_hop(name.as_str())
            || stays_at_provider(name.as_str())
            || named.contains(name.as_str());
        if dropped {
            continue;
        }
        if let Ok(value) = HeaderValue::from_maybe_shared(owned(value)) {
            cleaned.try_append(name, value).map_err(|_| BadHead::TooMany)?;
        }
    }
    Ok(cleaned)
}

/// Whether the length is missing or is one number. Any other length would break the connection to
/// the client.
fn has_possible_length(headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let (first, second) = (lengths.next(), lengths.next());
    let is_number = |value: &HeaderValue| {
        let digits = value.as_bytes();
        let text = value.to_str().ok().filter(|_| digits.iter().all(u8::is_ascii_digit));
        text.is_some_and(|text| text.parse::<u64>().is_ok())
    };
    first.is_none_or(is_number) && second.is_none()
}

/// The head of a stream whose worker reports its status only at the end (walkthrough 3).
pub(crate) fn assumed_stream() -> Head {
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
            ("Location", "http://elsewhere.example/"),
            ("Link", "</x>; rel=preload"),
            ("Content-Security-Policy", "default-src *"),
            ("Content-Security-Policy-Report-Only", "default-src *"),
            ("Refresh", "0; url=http://elsewhere.example/"),
            ("Keep-Alive", "timeout=5"),
            ("Upgrade", "h2c"),
            ("bad name", "x"),
            ("x-back", "bad\nvalue"),
            ("x-many", "1"),
            ("x-many", "2"),
        ];
        let given = given.iter().map(|(name, value)| (*name, value.as_bytes().to_vec()));
        let head = head(429, given, Bytes::from).unwrap();
        assert_eq!(head.status, 429);
        let names: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["content-type", "x-many"]);
        assert_eq!(head.headers.get_all("x-many").iter().count(), 2);
    }

    #[test]
    fn impossible_statuses_are_refused() {
        for status in [0, 99, 100, 101, 1000] {
            let none = std::iter::empty::<(&str, Vec<u8>)>();
            let refused = head(status, none, Bytes::from).unwrap_err();
            assert_eq!(refused, BadHead::Status, "{status}");
        }
    }

    #[test]
    fn headers_without_end_are_refused() {
        let headers = |count| std::iter::repeat_n(("x-many", b"1".to_vec()), count);
        let head = |count| head(200, headers(count), Bytes::from);
        assert_eq!(head(MAX_HEADERS).unwrap().headers.len(), MAX_HEADERS);
        for count in [MAX_HEADERS + 1, 40_000] {
            assert_eq!(head(count).unwrap_err(), BadHead::TooMany);
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        let given = |values: &[&'static str]| {
            let values: Vec<_> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
            head(200, values.into_iter().map(|value| ("content-length", value)), Bytes::from)
        };
        assert_eq!(given(&["12"]).unwrap().headers["content-length"], "12");
        assert!(given(&[]).is_ok());
        let huge = "99999999999999999999";
        for bad in [&["abc"][..], &["2, 2"], &["+2"], &["-2"], &[""], &[huge], &["2", "2"]] {
            assert_eq!(given(bad).unwrap_err(), BadHead::Length, "{bad:?}");
        }
    }
}
