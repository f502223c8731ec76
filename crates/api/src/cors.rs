//! Pages of other origins, in browsers: what they may ask, and which answers they may read.
//!
//! What a page shows in its request is what counts, not where the page comes from: whoever has a key
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
mod tests {
    use axum::{Router, routing::get};
    use tower::ServiceExt;

    use super::*;

    const FOREIGN: (&str, &str) = ("origin", "https://evil.example");
    const ALLOWED: (&str, &str) = ("origin", "https://app.example");
    const POSTS: (&str, &str) = ("access-control-request-method", "POST");
    const KEY: (&str, &str) = ("authorization", "Bearer wk_1");

    /// The headers of an answer, and its status.
    async fn ask(method: &str, path: &str, given: &[(&str, &str)]) -> (u16, HeaderMap) {
        let answers = get(async || "yes").options(async || "never");
        let routes = ["/", "/rooms/{code}/events", "/v1/rooms", "/v1/rooms/{code}", "/v1/models"];
        let router =
            routes.iter().fold(Router::new(), |router, path| router.route(path, answers.clone()));
        let rules = LocalRules { allowed_origins: vec![ALLOWED.1.into()], ..LocalRules::default() };
        let request = Request::builder().method(method).uri(path).header("host", "localhost:9178");
        let request =
            given.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let service = Cors::new(router, rules);
        let response = service.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        (response.status().as_u16(), response.headers().clone())
    }

    /// Whose pages may read the answer to a `GET`.
    async fn reader(path: &str, given: &[(&str, &str)]) -> Option<String> {
        let (_, headers) = ask("GET", path, given).await;
        let reader = headers.get("access-control-allow-origin")?;
        assert_eq!(headers["vary"], "origin");
        assert!(!headers.contains_key("access-control-allow-credentials"));
        Some(reader.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn any_page_is_told_that_it_may_ask() {
        for path in ["/v1/models", "/nowhere", "/v1/rooms/SWIFT1"] {
            let asked =
                ("access-control-request-headers", "content-type,x-api-key, X-Stainless-OS");
            let (status, headers) = ask("OPTIONS", path, &[FOREIGN, POSTS, asked]).await;
            assert_eq!(
                (status, &headers["access-control-allow-origin"]),
                (204, &"*".parse().unwrap())
            );
            assert_eq!(headers["access-control-allow-methods"], METHODS);
            let allowed = "Content-Type, Authorization, x-api-key, X-Stainless-OS";
            assert_eq!(headers["access-control-allow-headers"], allowed);
            assert!(!headers.contains_key("access-control-allow-credentials"));
        }
        let odd = ("access-control-request-headers", "caf\u{e9}");
        let (status, headers) = ask("OPTIONS", "/", &[FOREIGN, POSTS, odd]).await;
        assert_eq!(
            (status, &headers["access-control-allow-headers"]),
            (204, &HEADERS.parse().unwrap())
        );
    }

    #[tokio::test]
    async fn on_the_paths_of_rooms_every_options_is_answered_as_stock_programs_know_it() {
        for path in
            ["/rooms", "/rooms/A/v1/models", "/v1/rooms", "/v1/health", "/messages", "/events"]
        {
            let (status, headers) = ask("OPTIONS", path, &[]).await;
            assert_eq!(
                (status, &headers["access-control-allow-origin"]),
                (204, &"*".parse().unwrap())
            );
            assert_eq!(headers["access-control-allow-headers"], "Content-Type, Authorization");
        }
        for path in ["/v1/models", "/"] {
            let (status, headers) = ask("OPTIONS", path, &[]).await;
            assert_eq!((status, headers.get("access-control-allow-origin")), (200, None), "{path}");
        }
    }

    #[tokio::test]
    async fn whoever_shows_a_credential_may_read_the_answer_on_any_page() {
        for path in ["/v1/models", "/v1/rooms", "/nowhere"] {
            assert_eq!(reader(path, &[FOREIGN, KEY]).await.as_deref(), Some("*"), "{path}");
            let key = ("x-api-key", "wk_1");
            assert_eq!(reader(path, &[FOREIGN, key]).await.as_deref(), Some("*"), "{path}");
        }
        assert_eq!(reader("/v1/models", &[FOREIGN, ("authorization", "Bearer ")]).await, None);
        assert_eq!(reader("/v1/models", &[FOREIGN, ("cookie", "key=wk_1")]).await, None);
    }

    #[tokio::test]
    async fn the_code_of_a_room_is_a_credential() {
        for path in ["/rooms/swift-eagle-42/events", "/v1/rooms/4V9SXC", "/rooms/x"] {
            assert_eq!(reader(path, &[FOREIGN]).await.as_deref(), Some("*"), "{path}");
        }
        for path in
            ["/rooms", "/rooms/", "/rooms//events", "/v1/rooms", "/v1/rooms/", "/v1/roomsA/b"]
        {
            assert_eq!(reader(path, &[FOREIGN]).await, None, "{path}");
        }
    }

    #[tokio::test]
    async fn without_a_credential_only_own_and_allowed_pages_may_read_the_answer() {
        for path in ["/v1/models", "/v1/rooms", "/v1/health", "/messages", "/nowhere"] {
            assert_eq!(reader(path, &[FOREIGN]).await, None, "{path}");
            assert_eq!(reader(path, &[("origin", "null")]).await, None, "{path}");
            assert_eq!(reader(path, &[ALLOWED]).await.as_deref(), Some(ALLOWED.1), "{path}");
            let own = "http://localhost:9178";
            assert_eq!(reader(path, &[("origin", own)]).await.as_deref(), Some(own), "{path}");
        }
    }

    #[tokio::test]
    async fn from_no_page_only_the_paths_of_rooms_have_the_header() {
        for path in ["/v1/rooms", "/v1/rooms/A", "/rooms/A/events", "/v1/health", "/messages"] {
            assert_eq!(reader(path, &[]).await.as_deref(), Some("*"), "{path}");
        }
        for path in ["/v1/models", "/v1/roomsA", "/messages2", "/", "/v1/messages"] {
            let (_, headers) = ask("GET", path, &[KEY]).await;
            let added = ["access-control-allow-origin", "vary", "access-control-expose-headers"];
            assert!(added.iter().all(|name| !headers.contains_key(*name)), "{path}: {headers:?}");
        }
    }

    #[tokio::test]
    async fn a_page_may_read_what_clients_look_for_in_headers() {
        let (_, headers) = ask("GET", "/v1/models", &[FOREIGN, KEY]).await;
        let exposed = headers["access-control-expose-headers"].to_str().unwrap();
        let exposed: Vec<&str> = exposed.split(", ").collect();
        for name in ["retry-after", "x-request-id", "request-id", "x-warren-usage"] {
            assert!(exposed.contains(&name), "{name} is not in {exposed:?}");
        }
        for what in ["requests", "tokens"] {
            for of in ["limit", "remaining", "reset"] {
                assert!(exposed.contains(&&*format!("x-ratelimit-{of}-{what}")), "{exposed:?}");
                let anthropic = format!("anthropic-ratelimit-{what}-{of}");
                assert!(exposed.contains(&&*anthropic), "{exposed:?}");
            }
        }
    }
}
