//! Answers that show that this is a Warren.

use axum::response::Response;
use http::{HeaderValue, header};

use crate::{models::VERSION, state::Api};

/// An answer of this content type. Its header shows that this server is a Warren: another Warren that looks for model
/// servers must not take it for an Ollama.
pub(super) fn response(api: &Api, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(axum::body::Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(VERSION, HeaderValue::from_static(api.version()));
    response
}

pub(super) fn json(api: &Api, value: &impl serde::Serialize) -> Response {
    response(api, "application/json", protocol::json::write(value))
}
