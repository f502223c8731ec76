//! The time.

use std::time::Instant;

/// The time, for everything that waits. Tests may stop it.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
