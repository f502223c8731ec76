//! Work on threads for blocking work: on a large body, and for a disk or a database.

use base::error::chain;
use http::StatusCode;

use crate::error::{ApiError, Kind};

/// Bodies up to this size, in bytes, are processed at once; larger ones on a thread for blocking work.
pub(crate) const INLINE_LIMIT: usize = 256 * 1024;

/// Runs work on a body of this length; a large one goes to a thread for blocking work.
///
/// # Errors
/// 500 when the work broke off.
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

/// Runs work that waits for the disk on a blocking thread.
///
/// # Errors
/// 500 when the work broke off.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let words = "the server could not do this; its log tells more";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Server, words)
    })
}

/// The error for a failed database.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Server, chain(error))
}
