//! Requests that never become jobs.

use axum::response::Response;
use base::JobId;
use http::request::Parts;

use crate::{error::ApiError, paths, read, shape::Shape, state::Api};

/// Refuses a request, counts it and logs it: jobs are counted and logged elsewhere, but this never becomes one.
pub(crate) async fn refuse(
    shape: &'static dyn Shape,
    api: &Api,
    parts: &Parts,
    body: axum::body::Body,
    error: &ApiError,
    id: JobId,
) -> Response {
    let status = error.status.as_u16();
    api.refusals().count(error.status);
    tracing::info!(target: "request", request_id = %id, path = paths::path(&parts.uri),
        outcome = "refused", status, message = %error.message);
    read::discard(&parts.headers, body).await;
    error.response(shape, id)
}
