//! A minimum rate, as a value.

use std::time::Duration;

/// How far a sender may still fall behind a minimum rate. A faster sender never gains more leeway than
/// it had at the beginning: a burst does not permit a trickle afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// In bytes per second.
    rate: f64,
    most: Duration,
    left: Duration,
}

impl Pace {
    /// Requires at least this many bytes per second, and at most `most` of delay behind that.
    pub fn new(bytes_per_second: u32, most: Duration) -> Self {
        Self { rate: f64::from(bytes_per_second.max(1)), most, left: most }
    }

    /// How long the sender may be silent before it is too slow.
    pub const fn left(&self) -> Duration {
        self.left
    }

    /// This many bytes came, this long after the last ones.
    pub fn came(&mut self, bytes: usize, after: Duration) {
        let earned = (bytes as f64 / self.rate).min(self.most.as_secs_f64());
        let left = self.left.saturating_sub(after) + Duration::from_secs_f64(earned);
        self.left = left.min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_sender_that_keeps_the_rate_is_never_late() {
        let mut pace = Pace::new(1000, 5 * SECOND);
        (0..100).for_each(|_| pace.came(1000, SECOND));
        assert_eq!(pace.left(), 5 * SECOND);
        (0..4).for_each(|_| pace.came(500, SECOND));
        assert_eq!(pace.left(), 3 * SECOND);
    }

    #[test]
    fn a_burst_does_not_allow_a_trickle() {
        let mut pace = Pace::new(1000, 5 * SECOND);
        pace.came(usize::MAX, SECOND);
        assert_eq!(pace.left(), 5 * SECOND);
        (0..9).for_each(|_| pace.came(1, SECOND));
        assert!(pace.left() <= SECOND / 1000, "{:?}", pace.left());
    }
}
