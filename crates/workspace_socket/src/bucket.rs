//! The rate limit of a connection. A message over the rate delays the next one; none is dropped.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, FakeRelativeClock},
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, direct::NotKeyed},
};

/// Permits a number of messages per second, and a burst of the same number.
#[derive(Debug)]
pub(crate) struct Bucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, NoOpMiddleware<Nanos>>,
    /// Advanced explicitly, because time is a parameter here.
    clock: FakeRelativeClock,
    /// The time that the clock shows.
    shown: Instant,
}

impl Bucket {
    pub(crate) fn new(rate: u32, now: Instant) -> Self {
        let quota = Quota::per_second(NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN));
        let clock = FakeRelativeClock::default();
        let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
        Self { limiter, clock, shown: now }
    }

    /// Counts a message that has arrived. Returns how long to wait before the next one is read.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Duration> {
        self.show(now);
        let free_in = self.limiter.check().err()?.wait_time_from(self.clock.now());
        // The message has already been read, so it takes the next permit, which is not free yet.
        self.show(self.shown + free_in);
        let _taken = self.limiter.check();
        Some(self.shown.saturating_duration_since(now))
    }

    fn show(&mut self, time: Instant) {
        self.clock.advance(time.saturating_duration_since(self.shown));
        self.shown = self.shown.max(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_the_rate_passes_and_then_messages_wait() {
        let mut now = Instant::now();
        let mut bucket = Bucket::new(10, now);
        assert!((0..10).all(|_| bucket.take(now).is_none()));
        for _ in 0..50 {
            let wait = bucket.take(now).unwrap();
            assert!((99..=101).contains(&wait.as_millis()), "{wait:?}");
            now += wait;
        }
        now += Duration::from_secs(1000);
        assert!((0..10).all(|_| bucket.take(now).is_none()));
        assert!(bucket.take(now).is_some());
    }
}
