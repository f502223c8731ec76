//! Pages of other origins: only those that the server's owner allows are told so.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, header};

use crate::state::Api;

/// What an allowed page may read of a response, beside what every page may.
const EXPOSED: &str = "x-request-id, request-id, retry-after, x-should-retry, x-warren-usage, \
    x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
    x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, \
    anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, \
    anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, \
    anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset";

pub(crate) async fn cors(State(api): State<Api>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN);
    let allowed = origin
        .filter(|origin| origin.to_str().is_ok_and(|origin| api.local().allows_origin(origin)));
    let Some(origin) = allowed.cloned() else { return next.run(request).await };
    let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if asks && request.method() == Method::OPTIONS {
        preflight(&request)
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    response
}

fn preflight(request: &Request) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(asked) = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
