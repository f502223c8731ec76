//! Requests a minute.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, FakeRelativeClock},
    middleware::StateInformationMiddleware,
    state::{InMemoryState, direct::NotKeyed},
};

use super::Gauge;

const MINUTE: Duration = Duration::from_secs(60);

/// Requests a minute: after a minute without requests, all may come at once; further ones at even distances.
pub(crate) struct Rate {
    limit: NonZeroU32,
    limiter: RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, StateInformationMiddleware>,
    /// Moved by hand: time is a parameter here.
    clock: FakeRelativeClock,
    /// The time that the clock shows.
    shown: Instant,
    /// How many more requests could have been made right after the last one, and when the last one was made.
    last: (u32, Instant),
}

impl Rate {
    pub(crate) fn new(limit: NonZeroU32, now: Instant) -> Self {
        let clock = FakeRelativeClock::default();
        let limiter = RateLimiter::direct_with_clock(Quota::per_minute(limit), clock.clone())
            .with_middleware::<StateInformationMiddleware>();
        Self { limit, limiter, clock, shown: now, last: (limit.get(), now) }
    }

    /// Counts a request, or returns the time until the next one is allowed.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.clock.advance(now.saturating_duration_since(self.shown));
        self.shown = self.shown.max(now);
        let state = self.limiter.check();
        let state = state.map_err(|until| until.wait_time_from(self.clock.now()))?;
        self.last = (state.remaining_burst_capacity(), now);
        Ok(())
    }

    pub(crate) fn gauge(&self, now: Instant) -> Gauge {
        let (left, at) = self.last;
        let limit = self.limit.get();
        let passed = now.saturating_duration_since(at).min(MINUTE).as_nanos();
        let back = passed * u128::from(limit) / MINUTE.as_nanos();
        let remaining = u32::try_from(u128::from(left) + back).unwrap_or(limit).min(limit);
        let reset = MINUTE.mul_f64(f64::from(limit - remaining) / f64::from(limit));
        Gauge { limit: limit.into(), remaining: remaining.into(), reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_worth_at_once_then_evenly() {
        let start = Instant::now();
        let mut rate = Rate::new(NonZeroU32::new(6).unwrap(), start);
        let mut taken = |at| rate.take(at).map(|()| rate.gauge(at).remaining);
        let left: Vec<u64> = (0..6).map(|_| taken(start).unwrap()).collect();
        assert_eq!(left, [5, 4, 3, 2, 1, 0]);
        assert_eq!(taken(start), Err(Duration::from_secs(10)));
        let later = start + Duration::from_secs(10);
        assert_eq!(taken(later), Ok(0));
        assert!(taken(later).is_err());
        assert_eq!(taken(later + MINUTE), Ok(5));
    }

    #[test]
    fn the_gauge_refills_with_time() {
        let start = Instant::now();
        let after = |secs| start + Duration::from_secs(secs);
        let mut rate = Rate::new(NonZeroU32::new(6).unwrap(), start);
        let gauge_at = |rate: &Rate, at| (rate.gauge(at).remaining, rate.gauge(at).reset.as_secs());
        assert_eq!(gauge_at(&rate, start), (6, 0));
        (0..6).for_each(|_| rate.take(start).unwrap());
        assert_eq!(
            [0, 9, 10, 35, 60, 6_000].map(|secs| gauge_at(&rate, after(secs))),
            [(0, 60), (0, 60), (1, 50), (3, 30), (6, 0), (6, 0)]
        );
    }
}
