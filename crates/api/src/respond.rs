//! Errors as responses, and the answers at paths and methods that no route has.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use base::JobId;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

use crate::{
    admission, cors,
    error::{ApiError, Kind, nothing_at, retry_after},
    head::{self, new_id},
    ollama, room,
    shape::{self, Shape},
    unpack::{self, Coding},
    web,
};

/// The header that tells the official clients whether to retry.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl ApiError {
    /// The error as a response in the API's own form.
    pub(crate) fn response(&self, shape: &dyn Shape, id: JobId) -> Response {
        let mut response = Response::new(Body::from(shape.error_body(self, id)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, retry_after(after));
        }
        if self.code == Some(unpack::UNKNOWN) {
            let taken = HeaderValue::from_static(Coding::TAKEN);
            headers.insert(header::ACCEPT_ENCODING, taken);
        }
        if self.is_in_vain() {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if let Some(standing) = &self.standing {
            admission::put_standing(headers, shape.endpoint(), standing);
        }
        head::put_job_id(headers, shape, id);
        if self.is_for_page() {
            cors::open_to_page(&mut response);
        }
        response
    }

    /// Whether a retry would fail in the same way, although clients retry an error of this status by default.
    fn is_in_vain(&self) -> bool {
        self.kind == Kind::Quota
            || matches!(self.code, Some("request_timeout" | "loop_detected" | "nobody_lends"))
    }
}

/// In OpenAI's form, for paths that belong to no API.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.response(shape::of_path(""), new_id())
    }
}

/// Answers an ambiguous request with an error in the form of its path.
pub fn ambiguous(path: &str, words: &'static str) -> Response {
    let error = ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words);
    error.response(shape::of_path(path), new_id())
}

/// Answers a path that no route has.
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
pub async fn method_not_allowed(uri: Uri, method: Method) -> Response {
    if let Some(response) = room::no_route(&uri) {
        return response;
    }
    let path = uri.path();
    let words = format!("{method} is not a method of {path}");
    let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, Kind::Invalid, words);
    error.response(shape::of_path(path), new_id())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scheduler::Ending;

    use super::*;

    #[test]
    fn retry_after_is_told_in_whole_seconds() {
        let ending = Ending::QueueFull { retry_after: Duration::from_millis(1_200) };
        let error = ApiError::of_failure(&ending.into(), "m");
        let response = error.response(shape::of_path("/v1/messages"), JobId::from_random(0));
        assert_eq!(response.headers()["retry-after"], "2");
        assert_eq!(response.headers()["request-id"], response.headers()["x-request-id"]);
        assert!(!response.headers().contains_key("x-should-retry"));
    }

    #[test]
    fn clients_are_told_not_to_retry_in_vain() {
        let slow = ApiError::of_failure(&Ending::RequestTimeout.into(), "m");
        let used_up = ApiError::new(StatusCode::TOO_MANY_REQUESTS, Kind::Quota, "used up");
        for error in [slow, used_up] {
            let response = error.response(shape::of_path(""), JobId::from_random(0));
            assert_eq!(response.headers()["x-should-retry"], "false");
        }
    }
}
