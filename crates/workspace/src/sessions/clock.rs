//! The time.

use std::time::Instant;

/// The current time of tokio's clock, which tests can stop.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
