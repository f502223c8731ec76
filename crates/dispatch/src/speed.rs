//! The speed of a provider, in thousandths of a token a second.

use std::time::Duration;

/// Answers with fewer tokens say more about the time to the first token than about speed.
const FEWEST_TOKENS: u64 = 8;

/// The weight of a new answer in the average: one part in this many.
const WEIGHT: i64 = 4;

/// The speed that a provider reports, and the one measured from its answers.
#[derive(Debug, Default)]
pub(crate) struct Speed {
    reported: Option<u32>,
    /// The moving average.
    measured: Option<u32>,
}

impl Speed {
    /// Records the speed that it reports.
    pub(crate) fn reports(&mut self, speed: Option<u32>) {
        self.reported = speed;
    }

    /// Records a whole answer of `tokens` that took this long, including its wait at the provider.
    pub(crate) fn measured(&mut self, time: Duration, tokens: Option<u64>) {
        let Some(tokens) = tokens.filter(|tokens| *tokens >= FEWEST_TOKENS) else { return };
        let new = speed_of(tokens, time);
        self.measured = Some(self.measured.map_or(new, |old| moved(old, new)));
    }

    /// The measured speed, or else the reported one.
    pub(crate) fn now(&self) -> Option<u32> {
        self.measured.or(self.reported)
    }
}

fn speed_of(tokens: u64, time: Duration) -> u32 {
    // At least 1 ms: an answer may take less.
    let millis = time.as_secs().saturating_mul(1_000).saturating_add(time.subsec_millis().into());
    u32::try_from(tokens.saturating_mul(1_000_000) / millis.max(1)).unwrap_or(u32::MAX)
}

fn moved(old: u32, new: u32) -> u32 {
    let step = (i64::from(new) - i64::from(old)) / WEIGHT;
    u32::try_from(i64::from(old) + step).unwrap_or(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn answers_count_more_than_words() {
        let mut speed = Speed::default();
        assert_eq!(speed.now(), None);
        speed.reports(Some(90_000));
        assert_eq!(speed.now(), Some(90_000));
        speed.measured(SECOND * 2, Some(20));
        assert_eq!(speed.now(), Some(10_000));
        speed.reports(None);
        assert_eq!(speed.now(), Some(10_000));
    }

    #[test]
    fn the_average_moves_a_quarter_of_the_way() {
        let mut speed = Speed::default();
        for (seconds, tokens) in [(1, 40), (1, 80), (4, 40)] {
            speed.measured(SECOND * seconds, Some(tokens));
        }
        assert_eq!(speed.now(), Some(40_000));
    }

    #[test]
    fn short_answers_and_those_of_unknown_length_tell_nothing() {
        let mut speed = Speed::default();
        speed.measured(SECOND, Some(7));
        speed.measured(SECOND, None);
        assert_eq!(speed.now(), None);
    }

    #[test]
    fn no_answer_is_infinitely_fast() {
        let mut speed = Speed::default();
        speed.measured(Duration::ZERO, Some(u64::MAX));
        assert_eq!(speed.now(), Some(u32::MAX));
        speed.measured(Duration::MAX, Some(8));
        assert_eq!(speed.now(), Some(u32::MAX - u32::MAX / 4));
    }
}
