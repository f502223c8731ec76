//! Which answers a page may read.

use axum::{Router, routing::get};
use base::Live;
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
    let service = Cors::new(router, Live::new(rules));
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
        let names = ("access-control-request-headers", "content-type,x-api-key, X-Stainless-OS");
        let (status, headers) = ask("OPTIONS", path, &[FOREIGN, POSTS, names]).await;
        assert_eq!((status, &headers["access-control-allow-origin"]), (204, &"*".parse().unwrap()));
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
    for path in ["/rooms", "/rooms/A/v1/models", "/v1/rooms", "/v1/health", "/messages", "/events"]
    {
        let (status, headers) = ask("OPTIONS", path, &[]).await;
        assert_eq!((status, &headers["access-control-allow-origin"]), (204, &"*".parse().unwrap()));
        assert_eq!(headers["access-control-allow-headers"], "Content-Type, Authorization");
    }
    for path in ["/v1/models", "/"] {
        let (status, headers) = ask("OPTIONS", path, &[]).await;
        assert_eq!((status, headers.get("access-control-allow-origin")), (200, None), "{path}");
    }
}

#[tokio::test]
async fn a_page_that_presents_a_credential_may_read_the_answer() {
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
    for path in ["/rooms", "/rooms/", "/rooms//events", "/v1/rooms", "/v1/rooms/", "/v1/roomsA/b"] {
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
