//! Refuses requests that a proxy in front of this server could read differently. After this check, a
//! request has exactly one name for the server.
//!
//! - two `Host` headers, or none in a request of HTTP/1.1 (RFC 9112 section 3.2), or a transfer coding other than
//!   `chunked` alone (section 6.1): the answer is 400, and a connection of HTTP/1 is closed
//! - a target that names a host overrides `Host` (section 3.2.2; RFC 9113 section 8.3.1), for all later
//!   checks
//! - several slashes in a row in the path become one, and a slash at its end is dropped: the base URLs of clients
//!   often have a slash too many
//! - a path that can only be meant for an API ([`api::paths`]) becomes that API's path

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use futures_util::future::Either;
use http::{
    HeaderMap, HeaderValue, Request, Uri, Version, header,
    uri::{Authority, PathAndQuery},
};
use tower::Service;

/// A service that only gets unambiguous requests.
#[derive(Debug, Clone)]
pub(crate) struct Strict<S>(pub(crate) S);

impl<S, B> Service<Request<B>> for Strict<S>
where
    S: Service<Request<B>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(words) = ambiguity(request.version(), request.headers()) {
            return Either::Right(ready(Ok(refused(&request, words))));
        }
        settle_host(&mut request);
        settle_slashes(request.uri_mut());
        if let Some(path) = api::paths::meant(request.uri().path(), request.headers()) {
            put_path(request.uri_mut(), path);
        }
        Either::Left(self.0.call(request))
    }
}

fn ambiguity(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    match headers.get_all(header::HOST).iter().count() {
        0 if version == Version::HTTP_11 => return Some("the request has no Host header"),
        0 | 1 => {}
        _ => return Some("the request has more than one Host header"),
    }
    let codings: Vec<&HeaderValue> = headers.get_all(header::TRANSFER_ENCODING).iter().collect();
    let is_chunked = |coding: &&HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    match codings.as_slice() {
        [] => None,
        [coding] if is_chunked(coding) => None,
        _ => Some("the only Transfer-Encoding that is taken is chunked, once"),
    }
}

fn refused<B>(request: &Request<B>, words: &'static str) -> Response {
    let path = request.uri().path();
    tracing::info!(target: "request", path, outcome = "refused", status = 400, message = words);
    let mut response: Response<Body> = api::respond::ambiguous(path, words);
    if request.version() <= Version::HTTP_11 {
        // A proxy may disagree about where this request ends.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn settle_host<B>(request: &mut Request<B>) {
    let Some(authority) = request.uri().authority() else { return };
    let host = HeaderValue::try_from(without_user(authority));
    let headers = request.headers_mut();
    match host {
        Ok(host) => drop(headers.insert(header::HOST, host)),
        Err(_) => drop(headers.remove(header::HOST)),
    }
}

fn settle_slashes(uri: &mut Uri) {
    let path = uri.path();
    let spare = path.contains("//") || (path.len() > 1 && path.ends_with('/'));
    if !spare {
        return;
    }
    let mut settled = String::with_capacity(path.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        settled.push('/');
        settled.push_str(segment);
    }
    if settled.is_empty() {
        settled.push('/');
    }
    put_path(uri, settled);
}

/// Replaces the path, which is made of pieces of the former one.
fn put_path(uri: &mut Uri, mut path: String) {
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = std::mem::take(uri).into_parts();
    // Pieces of a path are a path, too.
    parts.path_and_query = PathAndQuery::try_from(path).ok();
    *uri = Uri::from_parts(parts).unwrap_or_default();
}

fn without_user(authority: &Authority) -> &str {
    let text = authority.as_str();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(version: Version, lines: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        ambiguity(version, &headers).is_some()
    }

    #[test]
    fn ambiguous_requests_are_refused() {
        let is_refused =
            |lines: &[_]| is_refused(Version::HTTP_11, &[&[("host", "a")], lines].concat());
        assert!(!is_refused(&[("transfer-encoding", "Chunked")]));
        let codings = ["gzip, chunked", "chunked, chunked", "chunked, gzip", "identity", "", "x"];
        for coding in codings {
            assert!(is_refused(&[("transfer-encoding", coding)]), "{coding}");
        }
        assert!(is_refused(&[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")]));
    }

    #[test]
    fn slashes_too_many_name_the_same_path() {
        for (given, settled) in [
            ("/v1/models", "/v1/models"),
            ("//v1/chat/completions", "/v1/chat/completions"),
            ("/v1//chat///completions/", "/v1/chat/completions"),
            ("/v1/messages/?beta=true&x=//", "/v1/messages?beta=true&x=//"),
            ("/", "/"),
            ("//", "/"),
            ("/?a=/", "/?a=/"),
            ("/a%2F%2Fb/", "/a%2F%2Fb"),
            ("http://host:1//v1/models/", "http://host:1/v1/models"),
            ("*", "*"),
        ] {
            let mut uri = given.parse().unwrap();
            settle_slashes(&mut uri);
            assert_eq!(uri, settled, "{given}");
        }
    }

    #[test]
    fn a_request_has_one_host_and_only_that_of_http_1_1_must_have_it() {
        for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
            assert!(is_refused(version, &[("host", "a"), ("host", "a")]), "{version:?}");
            assert!(!is_refused(version, &[("host", "")]), "{version:?}");
            assert_eq!(is_refused(version, &[]), version == Version::HTTP_11, "{version:?}");
        }
    }

    fn host(target: &'static str) -> Option<String> {
        let request = Request::get(target).header(header::HOST, "localhost");
        let mut request = request.body(()).unwrap();
        settle_host(&mut request);
        request.headers().get(header::HOST).map(|host| host.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_target_names_the_host() {
        assert_eq!(host("/v1/models").unwrap(), "localhost");
        assert_eq!(host("http://evil.example:80/v1/models").unwrap(), "evil.example:80");
        assert_eq!(host("http://localhost@evil.example/").unwrap(), "evil.example");
    }
}
