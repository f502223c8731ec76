//! The rate at which bytes come or go. Pure.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// The time over which a rate is measured.
const SPAN: Duration = Duration::from_secs(5);

/// The most marks that are kept: a few a second.
const MAX_MARKS: usize = 64;

/// The rate of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Rate {
    marks: VecDeque<(Instant, u64)>,
}

impl Rate {
    /// Records the number of bytes so far.
    pub(super) fn mark(&mut self, now: Instant, bytes: u64) {
        self.marks.push_back((now, bytes));
        let is_old = |mark: &(Instant, u64)| now.saturating_duration_since(mark.0) > SPAN;
        // One older mark stays, as the start of the measured time.
        while self.marks.len() > MAX_MARKS || self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
    }

    /// Whether the last mark is younger than `span`.
    pub(super) fn is_fresh(&self, now: Instant, span: Duration) -> bool {
        self.marks.back().is_some_and(|(at, _)| now.saturating_duration_since(*at) < span)
    }

    /// Bytes a second, over the last seconds.
    pub(super) fn per_second(&self) -> u64 {
        let (Some(first), Some(last)) = (self.marks.front(), self.marks.back()) else { return 0 };
        let secs = last.0.saturating_duration_since(first.0).as_secs_f64();
        if secs <= 0.0 {
            return 0;
        }
        // The conversion of a float saturates.
        (last.1.saturating_sub(first.1) as f64 / secs) as u64
    }

    /// Seconds until there are `total` bytes, at this rate.
    pub(super) fn left(&self, total: u64) -> Option<u64> {
        let bytes = self.marks.back()?.1;
        total.saturating_sub(bytes).checked_div(self.per_second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let (start, mut rate) = (Instant::now(), Rate::default());
        assert_eq!((rate.per_second(), rate.left(10)), (0, None));
        for second in 0..20 {
            rate.mark(start + Duration::from_secs(second), second.min(10) * 100);
            if second == 8 {
                assert_eq!((rate.per_second(), rate.left(1_800)), (100, Some(10)));
            }
        }
        assert_eq!((rate.per_second(), rate.left(2_000)), (0, None), "nothing came lately");
    }

    #[test]
    fn marks_are_bounded() {
        let (start, mut rate) = (Instant::now(), Rate::default());
        for ms in 0..10_000 {
            rate.mark(start + Duration::from_millis(ms), ms * 1_000);
        }
        assert!(rate.marks.len() <= MAX_MARKS + 1);
        assert_eq!(rate.per_second(), 1_000_000);
    }
}
