//! The current time for code that is not passed one: the drop of a connection, the count of wrong
//! codes.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// A clock in milliseconds since 1970 that starts at a given time. It never runs backwards, and
/// never falls behind a time that it was given since.
pub(crate) struct Clock {
    start: u64,
    started: Instant,
    latest: AtomicU64,
}

impl Clock {
    pub(crate) fn new(now: u64) -> Self {
        Self { start: now, started: Instant::now(), latest: AtomicU64::new(now) }
    }

    /// Moves the clock forward to a time that a caller passed.
    pub(crate) fn hear(&self, now: u64) {
        self.latest.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        let since = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.start.saturating_add(since).max(self.latest.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_runs_on_its_own_and_is_never_behind_what_it_heard() {
        let clock = Clock::new(1_000);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(clock.now(), 3_000);
        clock.hear(10_000);
        clock.hear(5_000);
        assert_eq!(clock.now(), 10_000);
    }
}
