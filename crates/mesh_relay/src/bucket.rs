//! A token bucket. Pure: the time is passed in.

use std::time::{Duration, Instant};

use crate::settings::Rate;

/// The rest of a [`Rate`] that may still be used.
///
/// A limiter of `governor` would not do: it admits or refuses, but a frame that was already read
/// must be passed on, even if it is larger than a whole burst. Also, `governor` counts in whole
/// nanoseconds, which is wrong by several percent for rates in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    rate: Rate,
    left: f64,
    filled: Instant,
}

impl Bucket {
    pub(crate) fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, left: rate.burst, filled: now }
    }

    /// Takes one token, if there is one.
    ///
    /// # Errors
    /// How long until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        if self.left < 1.0 {
            return Err(self.until(1.0 - self.left));
        }
        self.left -= 1.0;
        Ok(())
    }

    /// Takes this many tokens, even more than there are. Returns how long to wait until the debt is
    /// paid.
    pub(crate) fn owe(&mut self, now: Instant, wanted: f64) -> Duration {
        self.fill(now);
        self.left -= wanted;
        if self.left >= 0.0 { Duration::ZERO } else { self.until(-self.left) }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.left = (self.left + passed * self.rate.per_second).min(self.rate.burst);
        self.filled = self.filled.max(now);
    }

    fn until(&self, lack: f64) -> Duration {
        // A bucket that fills very slowly must not make a wait that overflows.
        let seconds = (lack / self.rate.per_second).clamp(0.0, 3600.0);
        Duration::from_secs_f64(if seconds.is_nan() { 3600.0 } else { seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 2.0, burst: 3.0 };

    #[test]
    fn a_burst_passes_and_then_the_rate_of_each_second() {
        let now = Instant::now();
        let mut bucket = Bucket::full(RATE, now);
        assert!((0..3).all(|_| bucket.take(now).is_ok()));
        assert_eq!(bucket.take(now), Err(Duration::from_millis(500)));
        assert_eq!(bucket.take(now + Duration::from_millis(500)), Ok(()));
        let later = now + Duration::from_secs(100);
        assert!((0..3).all(|_| bucket.take(later).is_ok()));
        assert!(bucket.take(later).is_err());
    }

    #[test]
    fn owed_pieces_are_awaited() {
        let now = Instant::now();
        let mut bucket = Bucket::full(RATE, now);
        assert_eq!(bucket.owe(now, 3.0), Duration::ZERO);
        assert_eq!(bucket.owe(now, 4.0), Duration::from_secs(2));
        assert_eq!(bucket.owe(now + Duration::from_secs(2), 0.0), Duration::ZERO);
    }

    #[test]
    fn a_rate_of_nothing_and_time_that_goes_back_do_no_harm() {
        let now = Instant::now() + Duration::from_secs(10);
        let mut bucket = Bucket::full(Rate { per_second: 0.0, burst: 0.0 }, now);
        assert_eq!(bucket.take(now - Duration::from_secs(9)), Err(Duration::from_secs(3600)));
    }
}
