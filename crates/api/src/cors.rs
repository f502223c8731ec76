//! Pages of other origins, in browsers: what they may ask, and which answers they may read.
//!
//! What a page shows in its request is what counts, not where the page comes from: a client with a key
//! or the code of a room may use it from any page. Without either, being local is what lets a request
//! in, and a page of another origin is not local; nor may it read what it is answered.
//!
//! Cookies are used nowhere, so that a browser adds no credential of its own to what a page asks.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use access::LocalRules;
use axum::body::Body;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use pin_project_lite::pin_project;
use tower::Service;

/// What an allowed page may read of a response, beside what every page may.
const EXPOSED: &str = "x-request-id, request-id, retry-after, x-should-retry, x-warren-usage, \
    x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
    x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, \
    anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, \
    anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, \
    anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset";

/// What a page may ask with.
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE, OPTIONS";

/// Headers that a page may send in any case; those that it asks for come after them.
const HEADERS: &str = "Content-Type, Authorization";

/// Where rooms are; those of stock programs among them expect its headers on every answer.
const ROOM_PATHS: [&str; 5] = ["/rooms", "/v1/rooms", "/v1/health", "/messages", "/events"];

/// Below these the next segment is the code of a room.
const CODED: [&str; 2] = ["/rooms/", "/v1/rooms/"];

/// Answers preflights, and lets pages read the answers that they may.
#[derive(Debug, Clone)]
pub struct Cors<S> {
    inner: S,
    rules: Arc<LocalRules>,
}

impl<S> Cors<S> {
    /// The same service for browsers, too. `rules` tell which origins need to show nothing.
    pub fn new(inner: S, rules: LocalRules) -> Self {
        Self { inner, rules: Arc::new(rules) }
    }
}

impl<S, B> Service<Request<B>> for Cors<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answered<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if *request.method() == Method::OPTIONS && is_preflight(&request) {
            let preflight = Some(preflight(request.headers()));
            return Answered { asked: None, reader: None, preflight };
        }
        let reader = reader(&self.rules, &request);
        Answered { asked: Some(self.inner.call(request)), reader, preflight: None }
    }
}

pin_project! {
    /// An answer to come, and who may read it.
    pub struct Answered<F> {
        // The service's, unless it is never asked.
        #[pin]
        asked: Option<F>,
        // Whose pages may read it, if any.
        reader: Option<HeaderValue>,
        // The answer to a question that the service never sees.
        preflight: Option<Response<Body>>,
    }
}

impl<F, E> Future for Answered<F>
where
    F: Future<Output = Result<Response<Body>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(asked) = this.asked.as_pin_mut() else {
            // Nobody polls it again once it was ready.
            return this
                .preflight
                .take()
                .map_or(Poll::Pending, |response| Poll::Ready(Ok(response)));
        };
        let mut answer = ready!(asked.poll(cx));
        if let (Ok(response), Some(reader)) = (&mut answer, this.reader.take()) {
            let_read(response.headers_mut(), reader);
        }
        Poll::Ready(answer)
    }
}

/// Whose pages may read the answer to this request.
fn reader<B>(rules: &LocalRules, request: &Request<B>) -> Option<HeaderValue> {
    let (headers, path) = (request.headers(), request.uri().path());
    let anybody = || Some(HeaderValue::from_static("*"));
    let Some(origin) = headers.get(header::ORIGIN) else {
        // From no page. Stock programs find the header all the same where they look for it.
        return if is_room_path(path) { anybody() } else { None };
    };
    if names_room(path) || access::presented(headers).is_some() {
        return anybody();
    }
    rules.takes_page(request.uri(), headers).then(|| origin.clone())
}

fn let_read(headers: &mut HeaderMap, reader: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, reader);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    // On `*` as well: what was answered to one that is local must not be found in the cache by a
    // page that is not.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

/// Whether it is the question of a browser whether a page may ask something. On the paths of rooms
/// every `OPTIONS` is one.
fn is_preflight<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        || is_room_path(request.uri().path())
}

/// Any page may ask: what it shows with the request itself decides.
fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let_read(headers, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(asked));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

fn allowed_headers(asked: &HeaderMap) -> HeaderValue {
    let asked = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let asked = asked.and_then(|asked| asked.to_str().ok()).unwrap_or_default();
    let always = |name: &&str| HEADERS.split(", ").any(|known| known.eq_ignore_ascii_case(name));
    let more = asked.split(',').map(str::trim).filter(|name| !name.is_empty() && !always(name));
    let all: Vec<&str> = std::iter::once(HEADERS).chain(more).collect();
    HeaderValue::try_from(all.join(", ")).unwrap_or(HeaderValue::from_static(HEADERS))
}

fn is_room_path(path: &str) -> bool {
    ROOM_PATHS.iter().any(|room| {
        path.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a path has the code of a room: a credential, though in the path.
fn names_room(path: &str) -> bool {
    CODED.iter().any(|rooms| {
        path.strip_prefix(rooms).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests;
