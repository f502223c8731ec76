//! How long a model that failed is not started again.

use std::time::Duration;

/// The treatment of models that fail.
#[derive(Debug, Clone, Copy)]
pub struct FailureRules {
    /// The delay after the second failure in a row; it doubles with each further one. After the
    /// first failure there is none.
    pub delay: Duration,
    /// After this many failures in a row, requests for the model are refused for a while.
    pub most: u32,
    /// How long they are refused at first; each further failure doubles the time.
    pub rest: Duration,
    /// The longest rest.
    pub longest_rest: Duration,
    /// If a server has lived for this long, earlier failures no longer count.
    pub settled: Duration,
}

impl Default for FailureRules {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(1),
            most: 3,
            rest: Duration::from_secs(30),
            longest_rest: Duration::from_secs(300),
            settled: Duration::from_secs(60),
        }
    }
}

impl FailureRules {
    /// How long to wait before the next start, after this many failures in a row.
    pub(super) fn wait(&self, failures: u32) -> Duration {
        let doubled = |first: Duration, times: u32| first.saturating_mul(1 << times.min(16));
        match failures {
            0 | 1 => Duration::ZERO,
            few if few < self.most => doubled(self.delay, few - 2).min(self.rest),
            many => doubled(self.rest, many - self.most).min(self.longest_rest),
        }
    }

    /// Whether requests are refused during that time. Otherwise they wait.
    pub(super) fn is_refused(&self, failures: u32) -> bool {
        failures >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_a_loop_rests_longer_and_longer() {
        let rules = FailureRules { most: 4, ..FailureRules::default() };
        let waits: Vec<_> = (0..9).map(|failures| rules.wait(failures).as_secs()).collect();
        assert_eq!(waits, [0, 0, 1, 2, 30, 60, 120, 240, 300]);
        assert_eq!(rules.wait(u32::MAX), rules.longest_rest);
        assert!(!rules.is_refused(3) && rules.is_refused(4));
    }
}
