//! The delay before the next try, as a value that knows no clock.

use std::time::Duration;

/// Doubling delays between a first and a last, each shortened by up to a half at random, so that
/// many who lost the same server do not come back in one moment.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    next: Duration,
}

impl Backoff {
    /// Delays that start at `first` and double until `last`.
    pub const fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, next: first }
    }

    /// The delay to wait now. `random` is any random number; the delay lies between a half of the
    /// current step and the whole of it.
    pub fn next(&mut self, random: u32) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.last);
        let share = f64::from(random) / f64::from(u32::MAX);
        step.mul_f64(0.5 + share / 2.0)
    }

    /// Starts again from the first delay, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_its_last_and_starts_again() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let steps: Vec<_> = (0..5).map(|_| backoff.next(u32::MAX).as_secs()).collect();
        assert_eq!(steps, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.next(u32::MAX), Duration::from_secs(1));
    }

    #[test]
    fn jitter_takes_off_at_most_a_half() {
        let mut backoff = Backoff::new(Duration::from_secs(4), Duration::from_secs(4));
        assert_eq!(backoff.next(0), Duration::from_secs(2));
        let middle = backoff.next(u32::MAX / 2);
        assert!(middle > Duration::from_millis(2_990) && middle < Duration::from_millis(3_010));
    }
}
