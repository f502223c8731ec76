//! Histograms of nanoseconds, and their way from one process to another.

use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest time that is recorded, in nanoseconds: ten minutes.
const LONGEST: u64 = 600_000_000_000;

/// Times of many events. Kept to three digits, in bounded memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Pairs", into = "Pairs")]
pub(crate) struct Times(Option<Histogram<u64>>);

/// The same as (nanoseconds, how often) pairs: what is sent from the load generator.
type Pairs = Vec<(u64, u64)>;

impl Default for Times {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1_000, LONGEST, 3).ok())
    }
}

impl From<Pairs> for Times {
    fn from(pairs: Pairs) -> Self {
        let mut times = Self::default();
        pairs.into_iter().for_each(|(nanos, count)| times.add_many(nanos, count));
        times
    }
}

impl From<Times> for Pairs {
    fn from(times: Times) -> Self {
        let recorded = times.0.iter().flat_map(Histogram::iter_recorded);
        recorded.map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
    }
}

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(LONGEST);
        self.add_many(nanos, 1);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for at in other.0.iter().flat_map(Histogram::iter_recorded) {
            self.add_many(at.value_iterated_to(), at.count_at_value());
        }
    }

    /// The time within which this share (0 to 1) of events fell, in milliseconds; `None` of none.
    pub(crate) fn millis(&self, share: f64) -> Option<f64> {
        let times = self.0.as_ref().filter(|times| !times.is_empty())?;
        Some(Duration::from_nanos(times.value_at_quantile(share)).as_secs_f64() * 1e3)
    }

    fn add_many(&mut self, nanos: u64, count: u64) {
        if let Some(times) = &mut self.0 {
            times.saturating_record_n(nanos, count);
        }
    }
}

/// The time that all processes of the machine share, in microseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_survive_the_way_between_processes() {
        let mut here = Times::default();
        for i in 1..=100 {
            here.add(Duration::from_millis(i));
        }
        let sent = serde_json::to_string(&here).unwrap();
        let there: Times = serde_json::from_str(&sent).unwrap();
        for (share, millis) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert!((there.millis(share).unwrap() - millis).abs() < 0.2, "{share}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile_and_a_long_time_is_capped() {
        let mut times = Times::default();
        assert_eq!(times.millis(0.5), None);
        times.add(Duration::from_secs(100_000));
        assert!(times.millis(0.5).unwrap() >= 600_000.0);
    }
}
