//! Work on threads for blocking work: on a large body, and for a disk or a database.

use base::error::chain;
use http::StatusCode;

use crate::error::{ApiError, Kind};

/// Bodies up to this size, in bytes, are processed in the request's own task; larger ones on a thread for blocking
/// work.
pub(crate) const INLINE_LIMIT: usize = 256 * 1024;

/// Runs work on a body of `len` bytes: on a thread for blocking work if the body is large.
///
/// # Errors
/// 500 when the work panics.
pub(crate) async fn off_thread<T: Send + 'static>(
    len: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if len <= INLINE_LIMIT {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let words = "the request body could not be worked on";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Server, words)
    })
}

/// Runs work that waits for a disk or a database, on a thread for blocking work.
///
/// # Errors
/// 500 when the work panics.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let words = "the server could not do this; its log tells more";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Server, words)
    })
}

/// The error for a database that failed.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Server, chain(error))
}
