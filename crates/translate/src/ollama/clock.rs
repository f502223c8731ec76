//! The times of an answer, as far as this server can measure them.
//!
//! The time until the first piece, including any wait, counts for the prompt, and the time after it for
//! the answer. If an answer comes whole, only the sum is known, and it counts for the answer. The time
//! to load the model is unknown, and reported as 0.

use std::time::Duration;

use protocol::ollama::reply::timestamp;

/// Measures one answer.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// When the job was accepted, in seconds since 1970.
    accepted: u64,
    since: Duration,
    /// When the first piece came.
    first: Option<Duration>,
    comes_whole: bool,
}

/// Durations in nanoseconds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Durations {
    pub(crate) total: u64,
    pub(crate) prompt: u64,
    pub(crate) answer: u64,
}

impl Clock {
    pub(crate) fn new(accepted: u64) -> Self {
        Self { accepted, ..Self::default() }
    }

    /// Notes the time that has passed since the job was accepted.
    pub(crate) fn passed(&mut self, since: Duration) {
        self.since = since;
    }

    /// Notes that the provider answers with one JSON value.
    pub(crate) fn comes_whole(&mut self) {
        self.comes_whole = true;
    }

    /// Notes that a piece of the answer has come.
    pub(crate) fn piece(&mut self) {
        self.first.get_or_insert(self.since);
    }

    /// This moment as a timestamp.
    pub(crate) fn now(&self) -> String {
        let seconds = self.accepted.saturating_add(self.since.as_secs());
        timestamp(seconds, self.since.subsec_nanos())
    }

    pub(crate) fn durations(&self) -> Durations {
        let first =
            if self.comes_whole { Duration::ZERO } else { self.first.unwrap_or(self.since) };
        let answer = self.since.saturating_sub(first);
        Durations { total: nanos(self.since), prompt: nanos(first), answer: nanos(answer) }
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_parted_at_its_first_piece_and_a_whole_answer_is_not() {
        let measured = |whole: bool| {
            let mut clock = Clock::new(5);
            if whole {
                clock.comes_whole();
            }
            clock.passed(Duration::from_nanos(30));
            clock.piece();
            clock.passed(Duration::from_nanos(100));
            clock.piece();
            (clock.durations(), clock.now())
        };
        let now = "1970-01-01T00:00:05.000000100Z".to_owned();
        let parted = Durations { total: 100, prompt: 30, answer: 70 };
        assert_eq!(measured(false), (parted, now.clone()));
        assert_eq!(measured(true), (Durations { total: 100, prompt: 0, answer: 100 }, now));
    }
}
