//! Pages of other origins, in browsers: what they may ask, and which answers they may read.
//!
//! The credential in a request decides, not the origin of the page: with a key or the code of a room any
//! page may use the server. Without either, a request must be local. A page of another origin is not local,
//! and may read nothing but why it was refused.
//!
//! A browser adds one credential of its own: the cookie of a session of the server's page. [`SessionCookie`] makes
//! sure that the cookie counts in requests of that page only. No answer lets a page of another origin send
//! credentials.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use access::LocalRules;
use axum::body::Body;
use base::Live;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use pin_project_lite::pin_project;
use tower::Service;

use crate::web::cookie::SessionCookie;

/// Response headers that an allowed page may read, beside those that every page may.
const EXPOSED: &str = "x-request-id, request-id, retry-after, x-should-retry, x-warren-usage, x-warren-resume, \
    x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
    x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, \
    anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, \
    anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, \
    anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset";

/// The methods that a page may use.
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE, OPTIONS";

/// Request headers that are always allowed; those that the preflight names are added.
const HEADERS: &str = "Content-Type, Authorization";

/// The paths of rooms. Stock programs expect these headers on every answer there.
const ROOM_PATHS: [&str; 5] = ["/rooms", "/v1/rooms", "/v1/health", "/messages", "/events"];

/// Prefixes of paths whose next segment is the code of a room.
const CODED: [&str; 2] = ["/rooms/", "/v1/rooms/"];

/// The mark of a refusal that its page may read.
#[derive(Debug, Clone, Copy)]
struct OpenToPage;

/// Lets the page that a request comes from read this answer, whatever its origin.
pub(crate) fn open_to_page(response: &mut Response<Body>) {
    response.extensions_mut().insert(OpenToPage);
}

/// The header that carries the same mark on an answer of a fellow, on its way to this server.
const OPEN_TO_PAGE: &str = "x-warren-open-to-page";

/// Writes an answer's mark, if it has one, into its headers, for the fellow that the client reached.
pub(crate) fn write_mark(response: &mut Response<Body>) {
    if response.extensions().get::<OpenToPage>().is_some() {
        response.headers_mut().insert(OPEN_TO_PAGE, HeaderValue::from_static("true"));
    }
}

/// Takes the header with the mark off an answer of a fellow, and marks the answer itself.
pub(crate) fn read_mark(response: &mut Response<Body>) {
    if response.headers_mut().remove(OPEN_TO_PAGE).is_some() {
        open_to_page(response);
    }
}

/// Answers preflights, and lets pages read the answers that they may.
#[derive(Debug, Clone)]
pub struct Cors<S> {
    inner: S,
    rules: Live<LocalRules>,
    cookie: Option<SessionCookie>,
}

impl<S> Cors<S> {
    /// Wraps a service. `rules` say which origins need no credential.
    pub fn new(inner: S, rules: Live<LocalRules>) -> Self {
        Self { inner, rules, cookie: None }
    }

    /// The same for a server with a page, whose sessions are in this cookie.
    #[must_use]
    pub fn with_cookie(self, cookie: SessionCookie) -> Self {
        Self { cookie: Some(cookie), ..self }
    }

    /// The rules with which this was made.
    pub fn rules(&self) -> &Live<LocalRules> {
        &self.rules
    }
}

impl<S, B> Service<Request<B>> for Cors<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = CorsAnswer<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if *request.method() == Method::OPTIONS && is_preflight(&request) {
            let preflight = Some(preflight(request.headers()));
            return CorsAnswer { future: None, reader: None, page: None, preflight };
        }
        let reader = reader(&self.rules.get(), &request);
        let page = request.headers().get(header::ORIGIN).cloned();
        // After the call of `reader`, for which only a credential that the page itself presents counts.
        if let Some(cookie) = &self.cookie {
            cookie.present(&mut request);
        }
        CorsAnswer { future: Some(self.inner.call(request)), reader, page, preflight: None }
    }
}

pin_project! {
    /// A pending answer, and the origin that may read it.
    pub struct CorsAnswer<F> {
        // The service's answer; `None` for a preflight.
        #[pin]
        future: Option<F>,
        // The origin whose pages may read the answer.
        reader: Option<HeaderValue>,
        // The origin that the request comes from. Its pages may read why they are refused.
        page: Option<HeaderValue>,
        // The answer to a preflight, which the service never sees.
        preflight: Option<Response<Body>>,
    }
}

impl<F, E> Future for CorsAnswer<F>
where
    F: Future<Output = Result<Response<Body>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(future) = this.future.as_pin_mut() else {
            // A future is not polled again after it was ready.
            return this
                .preflight
                .take()
                .map_or(Poll::Pending, |response| Poll::Ready(Ok(response)));
        };
        let mut answer = ready!(future.poll(cx));
        if let Ok(response) = &mut answer {
            let page = response.extensions().get::<OpenToPage>().and_then(|_| this.page.take());
            if let Some(reader) = this.reader.take().or(page) {
                let_read(response.headers_mut(), reader);
            }
        }
        Poll::Ready(answer)
    }
}

/// The origin whose pages may read the answer to this request.
fn reader<B>(rules: &LocalRules, request: &Request<B>) -> Option<HeaderValue> {
    let (headers, path) = (request.headers(), request.uri().path());
    let anybody = || Some(HeaderValue::from_static("*"));
    let Some(origin) = headers.get(header::ORIGIN) else {
        // Without an origin it is not from a page. On the paths of rooms stock programs look for the header even so.
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
    // With `*` as well: a cache must not give the answer to a local request to a page that is not local.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

/// Whether an `OPTIONS` request is a preflight. On the paths of rooms each one is.
fn is_preflight<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        || is_room_path(request.uri().path())
}

/// Allows any page: the credential of the request itself decides.
fn preflight(request: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let_read(headers, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(request));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

fn allowed_headers(request: &HeaderMap) -> HeaderValue {
    let names = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let names = names.and_then(|names| names.to_str().ok()).unwrap_or_default();
    let always = |name: &&str| HEADERS.split(", ").any(|known| known.eq_ignore_ascii_case(name));
    let more = names.split(',').map(str::trim).filter(|name| !name.is_empty() && !always(name));
    let all: Vec<&str> = std::iter::once(HEADERS).chain(more).collect();
    HeaderValue::try_from(all.join(", ")).unwrap_or(HeaderValue::from_static(HEADERS))
}

fn is_room_path(path: &str) -> bool {
    ROOM_PATHS.iter().any(|room| {
        path.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a path holds the code of a room, which is a credential.
fn names_room(path: &str) -> bool {
    CODED.iter().any(|rooms| {
        path.strip_prefix(rooms).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests;
