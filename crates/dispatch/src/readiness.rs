//! Whether a provider's backend takes requests, and when it is tried again.

use std::time::Duration;

/// The time until the first retry. Each further refusal in a row doubles it.
const FIRST: Duration = Duration::from_millis(500);

/// The longest time until a retry.
const LAST: Duration = Duration::from_secs(5);

/// Why a provider's backend takes no requests now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unready {
    /// The backend accepts no connections, as during a restart.
    Away,
    /// The backend loads its model.
    Loading,
}

/// The state of a provider's backend, as the ends of jobs show it.
///
/// After a refusal the provider gets no jobs for a while. Then it gets as many as it takes, until
/// one of them shows that the backend is back. Meanwhile a provider whose backend is away does not
/// count, and one whose backend loads counts as busy.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    state: State,
    /// The time until the last retry; `None` after a sign that the backend is there.
    last: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ready,
    /// It is not tried yet.
    Waiting(Unready),
    /// It may be tried.
    Trying(Unready),
}

impl Readiness {
    /// Whether the provider may be given jobs.
    pub(crate) fn may_try(&self) -> bool {
        !matches!(self.state, State::Waiting(_))
    }

    /// Whether the backend was away when it was last tried.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.state, State::Waiting(Unready::Away) | State::Trying(Unready::Away))
    }

    /// Records a refusal. Returns the time until the next try, or `None` if a try is awaited
    /// already, since jobs that were given together are refused together.
    pub(crate) fn refused(&mut self, why: Unready) -> Option<Duration> {
        if !self.may_try() {
            return None;
        }
        let wait = self.last.map_or(FIRST, |last| last.saturating_mul(2).min(LAST));
        *self = Self { state: State::Waiting(why), last: Some(wait) };
        Some(wait)
    }

    /// Records that it is time to try again.
    pub(crate) fn try_again(&mut self) {
        // The backend stays unready until an answer. If each try counted as the end of the absence,
        // jobs' waits would begin again each time.
        if let State::Waiting(why) = self.state {
            self.state = State::Trying(why);
        }
    }

    /// Records a sign that the backend is there. Returns whether it was not before.
    pub(crate) fn note_back(&mut self) -> bool {
        std::mem::take(self).state != State::Ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_doubles_the_wait_until_the_backend_is_back() {
        let mut readiness = Readiness::default();
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push(readiness.refused(Unready::Away).unwrap().as_millis());
            assert_eq!(readiness.refused(Unready::Away), None, "given together");
            assert!(!readiness.may_try() && readiness.is_away());
            readiness.try_again();
            assert!(readiness.may_try() && readiness.is_away(), "until one shows that it is back");
        }
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        assert!(readiness.note_back() && !readiness.note_back() && !readiness.is_away());
        assert_eq!(readiness.refused(Unready::Loading), Some(FIRST));
        assert!(!readiness.is_away() && !readiness.may_try());
    }
}
