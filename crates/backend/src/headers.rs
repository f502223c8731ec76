//! The headers that pass to a backend and back: all except those that belong to one connection, and those about
//! the client itself.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use protocol::{
    headers::{ROUTE, is_hop_by_hop, named_by_connection, stays_at_server},
    via::VIA,
};

/// The headers of a request as a backend gets them, without a credential. Answers are asked for
/// uncompressed, because their usage is read. The headers that say how far the request may go
/// ([`ROUTE`]) and where it has been ([`VIA`]) stay: they are the server's own, since a server has
/// already removed or followed those of its client.
pub fn to_backend(headers: HeaderMap) -> HeaderMap {
    let stays = |name: &str| ![ROUTE, VIA].contains(&name) && stays_at_server(name);
    let mut headers = without(headers, stays);
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// The headers of an answer without those of the backend's connection. `content-length` stays, so
/// that the reader knows the length.
pub fn from_backend(headers: HeaderMap) -> HeaderMap {
    without(headers, |_| false)
}

/// The headers without those of one connection, and without those that `also` names.
fn without(mut headers: HeaderMap, also: impl Fn(&str) -> bool) -> HeaderMap {
    let named = named(&headers);
    let goes = |name: &str| {
        is_hop_by_hop(name)
            || name.starts_with("proxy-")
            || also(name)
            || named.iter().any(|other| other == name)
    };
    let gone: Vec<HeaderName> =
        headers.keys().filter(|name| goes(name.as_str())).cloned().collect();
    gone.into_iter().for_each(|name| drop(headers.remove(name)));
    headers
}

fn named(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::CONNECTION).iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(named_by_connection).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    const HOP: [(&str, &str); 10] = [
        ("connection", "close, X-Mine"),
        ("connection", "x-too"),
        ("x-mine", "1"),
        ("x-too", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-authenticate", "x"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
    ];

    #[test]
    fn a_backend_never_sees_the_clients_credentials() {
        let mut headers = map(&HOP);
        headers.extend(map(&[
            ("host", "warren"),
            ("content-length", "3"),
            ("accept-encoding", "gzip"),
            ("authorization", "Bearer client"),
            ("cookie", "a=b"),
            ("x-api-key", "client"),
            ("content-type", "application/json"),
            ("x-foo", "2"),
            ("x-warren-provider", "w-1"),
            ("x-warren-route", "local-only"),
            ("x-warren-via", "0123456789abcdef"),
        ]));
        let expected = map(&[
            ("content-type", "application/json"),
            ("x-foo", "2"),
            ("x-warren-route", "local-only"),
            ("x-warren-via", "0123456789abcdef"),
            ("accept-encoding", "identity"),
        ]);
        assert_eq!(to_backend(headers), expected);
    }

    #[test]
    fn an_answer_keeps_all_but_the_connections() {
        let rest = [
            ("content-length", "3"),
            ("retry-after", "7"),
            ("set-cookie", "a"),
            ("set-cookie", "b"),
        ];
        let mut headers = map(&HOP);
        headers.extend(map(&rest));
        assert_eq!(from_backend(headers), map(&rest));
    }
}
