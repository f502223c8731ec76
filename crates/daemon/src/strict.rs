//! Refuses requests that a proxy in front of this server could read differently. After this check, a
//! request has exactly one name for the server.
//!
//! - two `Host` headers (RFC 9112 section 3.2), or a transfer coding other than `chunked` alone
//!   (section 6.1): 400, and the connection is closed
//! - a target that names a host overrides `Host` (section 3.2.2; RFC 9113 section 8.3.1), for all later
//!   checks

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use futures_util::future::Either;
use http::{HeaderMap, HeaderValue, Request, Version, header, uri::Authority};
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
        if let Some(words) = ambiguity(request.headers()) {
            return Either::Right(ready(Ok(refused(&request, words))));
        }
        settle_host(&mut request);
        Either::Left(self.0.call(request))
    }
}

fn ambiguity(headers: &HeaderMap) -> Option<&'static str> {
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        return Some("the request has more than one Host header");
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

fn without_user(authority: &Authority) -> &str {
    let text = authority.as_str();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(lines: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        ambiguity(&headers).is_some()
    }

    #[test]
    fn ambiguous_requests_are_refused() {
        assert!(is_refused(&[("host", "a"), ("host", "a")]));
        assert!(!is_refused(&[("host", "a"), ("transfer-encoding", "Chunked")]));
        let codings = ["gzip, chunked", "chunked, chunked", "chunked, gzip", "identity", "", "x"];
        for coding in codings {
            assert!(is_refused(&[("transfer-encoding", coding)]), "{coding}");
        }
        assert!(is_refused(&[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")]));
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
