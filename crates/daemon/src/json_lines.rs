//! Streamed answers with one JSON object on each line.

use axum::{
    BoxError,
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, header};
use serde::Serialize;

/// A response that passes on these lines as they come.
pub(crate) fn response<E: Into<BoxError> + 'static>(
    lines: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Response {
    let kind = HeaderValue::from_static("application/x-ndjson");
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(lines)).into_response()
}

/// A value as a line.
///
/// # Errors
/// When the value cannot be written as JSON.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<Bytes> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line.into())
}
