//! The scheduler's clock.

use std::time::Instant;

/// The current time, as the runtime counts it: tests can pause it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
