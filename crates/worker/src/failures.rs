//! Which of many failures in a row are shown to people (pure).

/// Failures in a row of one thing that is tried again and again. A failure is shown if its words differ from those
/// of the one before, or if it is the third, the sixth, the twelfth and so on.
#[derive(Debug, Default)]
pub struct Failures {
    words: String,
    count: u32,
}

/// From this failure in a row on, it is logged as a warning. One or two may be a restart.
pub(crate) const WARN_FROM: u32 = 3;

impl Failures {
    /// Counts one more failure, in these words. Returns how many there were in a row, if this one
    /// is to be shown.
    pub fn count_one(&mut self, words: &str) -> Option<u32> {
        self.count = self.count.saturating_add(1);
        let is_new = self.words != words;
        if is_new {
            words.clone_into(&mut self.words);
        }
        (is_new || is_third_doubled(self.count)).then_some(self.count)
    }

    /// Begins to count again, after a success.
    pub fn over(&mut self) {
        *self = Self::default();
    }
}

fn is_third_doubled(count: u32) -> bool {
    count.is_multiple_of(WARN_FROM) && (count / WARN_FROM).is_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_is_reported_at_growing_intervals() {
        let mut failures = Failures::default();
        let shown: Vec<u32> = (0..100).filter_map(|_| failures.count_one("refused")).collect();
        assert_eq!(shown, [1, 3, 6, 12, 24, 48, 96]);
        assert_eq!(failures.count_one("no TLS"), Some(101), "other words are news");
        assert_eq!(failures.count_one("no TLS"), None);
        failures.over();
        assert_eq!(failures.count_one("no TLS"), Some(1));
    }
}
