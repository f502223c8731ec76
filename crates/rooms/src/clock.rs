//! The current time for code that is not passed one: the drop of a connection, the count of wrong
//! codes.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// A clock in milliseconds since 1970 that starts at a given time. It never runs backwards, never
/// stands still, and never falls behind a time that it was given since.
pub(crate) struct Clock {
    started: Instant,
    /// Its time at the start. A time that is heard and ahead of it moves it.
    start: AtomicU64,
}

impl Clock {
    pub(crate) fn new(now: u64) -> Self {
        Self { started: Instant::now(), start: AtomicU64::new(now) }
    }

    /// Moves the clock forward to a time that a caller passed.
    pub(crate) fn hear(&self, now: u64) {
        // The highest counts: callers' times come from several threads, in any order.
        self.start.fetch_max(now.saturating_sub(self.elapsed()), Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.start.load(Ordering::Relaxed).saturating_add(self.elapsed())
    }

    fn elapsed(&self) -> u64 {
        base::millis(self.started.elapsed())
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
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(clock.now(), 12_000, "a clock that was ahead once does not stand still");
    }
}
