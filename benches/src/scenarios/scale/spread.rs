//! Times of events that take microseconds.

use std::time::Duration;

/// Times, each kept exactly: a histogram's lowest step would be as long as some of them.
#[derive(Debug, Default)]
pub(super) struct Spread(Vec<u64>);

impl Spread {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The time within which this share (0 to 1) of events fell, in microseconds; `None` of none.
    pub(super) fn micros(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[(last as f64 * share) as usize] as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_sorted_times() {
        let mut spread = Spread::default();
        assert_eq!(spread.micros(0.5), None);
        (0..=100).rev().for_each(|micros| spread.add(Duration::from_micros(micros)));
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(|share| spread.micros(share)),
            [0, 50, 99, 100].map(|n| Some(f64::from(n)))
        );
    }
}
