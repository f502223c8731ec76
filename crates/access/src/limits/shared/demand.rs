//! How much of a limit was asked for lately.

use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The amounts that were taken in this second and in the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    began: Instant,
    now: u64,
    before: u64,
    /// When something was taken last, if it ever was.
    last: Option<Instant>,
}

impl Demand {
    pub(super) const fn new(now: Instant) -> Self {
        Self { began: now, now: 0, before: 0, last: None }
    }

    pub(super) fn add(&mut self, amount: u64, now: Instant) {
        self.roll(now);
        self.now = self.now.saturating_add(amount);
        self.last = Some(now);
    }

    /// The amount that a second takes.
    pub(super) fn of_a_second(&mut self, now: Instant) -> u64 {
        self.roll(now);
        self.now.max(self.before)
    }

    /// When it will have rested for this long.
    pub(super) fn rested_at(&self, span: Duration) -> Instant {
        self.last.unwrap_or(self.began) + span
    }

    fn roll(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began);
        if passed >= SECOND {
            self.before = if passed < 2 * SECOND { self.now } else { 0 };
            (self.now, self.began) = (0, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_second_takes_is_forgotten_after_two() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut demand = Demand::new(start);
        demand.add(3, after(10));
        demand.add(4, after(900));
        assert_eq!(demand.of_a_second(after(999)), 7);
        demand.add(1, after(1_200));
        assert_eq!(demand.of_a_second(after(1_900)), 7);
        assert_eq!(demand.of_a_second(after(2_300)), 1);
        assert_eq!(demand.of_a_second(after(9_000)), 0);
        assert_eq!(demand.rested_at(SECOND), after(2_200));
    }
}
