//! The scheduler's clock.

use std::time::Instant;

/// The current time by the runtime's clock, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
