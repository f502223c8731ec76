//! Work that waits for a disk or a database, and its errors.

use base::error::chain;
use http::StatusCode;

use crate::error::{ApiError, Kind};

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
