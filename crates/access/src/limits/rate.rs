//! Requests a minute.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::StateInformationMiddleware,
    nanos::Nanos,
    state::{InMemoryState, direct::NotKeyed},
};

use super::Gauge;

const MINUTE: Duration = Duration::from_secs(60);

/// The time as it was last given: the limiter has no clock of its own.
#[derive(Debug, Clone, Default)]
struct GivenClock(Arc<AtomicU64>);

impl Clock for GivenClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.load(Ordering::Relaxed).into()
    }
}

/// So many requests a minute: all at once after a minute's rest, then evenly.
pub(crate) struct Rate {
    limit: NonZeroU32,
    began: Instant,
    clock: GivenClock,
    limiter: RateLimiter<NotKeyed, InMemoryState, GivenClock, StateInformationMiddleware>,
}

impl Rate {
    pub(crate) fn new(limit: NonZeroU32, now: Instant) -> Self {
        let clock = GivenClock::default();
        let limiter = RateLimiter::direct_with_clock(Quota::per_minute(limit), clock.clone())
            .with_middleware::<StateInformationMiddleware>();
        Self { limit, began: now, clock, limiter }
    }

    /// Counts a request, or says how long until one may come.
    pub(crate) fn take(&self, now: Instant) -> Result<Gauge, Duration> {
        let passed = now.saturating_duration_since(self.began).as_nanos();
        self.clock.0.fetch_max(u64::try_from(passed).unwrap_or(u64::MAX), Ordering::Relaxed);
        match self.limiter.check() {
            Ok(state) => Ok(self.gauge(state.remaining_burst_capacity())),
            Err(until) => Err(until.wait_time_from(self.clock.now())),
        }
    }

    /// Where it stands, when so many may yet come at once.
    pub(crate) fn gauge(&self, remaining: u32) -> Gauge {
        let limit = self.limit.get();
        let taken = limit.saturating_sub(remaining);
        let reset = MINUTE.mul_f64(f64::from(taken) / f64::from(limit));
        Gauge { limit: limit.into(), remaining: remaining.into(), reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_worth_at_once_then_evenly() {
        let start = Instant::now();
        let rate = Rate::new(NonZeroU32::new(6).unwrap(), start);
        let left: Vec<u64> = (0..6).map(|_| rate.take(start).unwrap().remaining).collect();
        assert_eq!(left, [5, 4, 3, 2, 1, 0]);
        assert_eq!(rate.take(start), Err(Duration::from_secs(10)));
        let later = start + Duration::from_secs(10);
        assert_eq!(rate.take(later).unwrap().remaining, 0);
        assert!(rate.take(later).is_err());
        let rested = later + MINUTE;
        assert_eq!(rate.take(rested).unwrap(), rate.gauge(5));
        assert_eq!(rate.gauge(0).reset, MINUTE);
    }
}
