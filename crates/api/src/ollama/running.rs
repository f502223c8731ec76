//! `/` and `/api/version`: what clients ask to find an Ollama.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, Uri, header};

use super::reply::response;
use crate::{state::Api, web::files};

/// The version of Ollama's API that is spoken. Clients compare it with the least that they need.
const SPOKEN: &str = "0.12.6";

pub(super) async fn version(State(api): State<Api>) -> Response {
    response(&api, "application/json", format!(r#"{{"version":"{SPOKEN}"}}"#))
}

/// The answer to a program that asks at `/` whether an Ollama is here. A browser gets the page there.
pub(crate) fn is_running(uri: &Uri, method: &Method, headers: &HeaderMap) -> Option<Response> {
    let asks = matches!(*method, Method::GET | Method::HEAD) && uri.path() == "/";
    (asks && !files::wants_page(headers) && !headers.contains_key(header::UPGRADE))
        .then(|| "Ollama is running".into_response())
}
