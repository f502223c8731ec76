//! Paths and methods that no route has.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::{
    error::{ApiError, Kind, nothing_at},
    head::new_id,
    ollama, room, shape, web,
};

pub(crate) async fn not_found(uri: Uri, method: Method, headers: HeaderMap) -> Response {
    if let Some(file) = web::files::answer(&uri, &method, &headers) {
        return file;
    }
    if let Some(running) = ollama::is_running(&uri, &method, &headers) {
        return running;
    }
    room::no_route(&uri).unwrap_or_else(|| nothing_at(&uri).into_response())
}

/// Answers a method that a path does not have.
pub async fn method_not_allowed(uri: Uri, method: http::Method) -> Response {
    if let Some(response) = room::no_route(&uri) {
        return response;
    }
    let path = uri.path();
    let words = format!("{method} is not a method of {path}");
    let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, Kind::Invalid, words);
    error.response(shape::of_path(path), new_id())
}
