//! The ends of links and workers, and the wait before the next try.

use std::time::Duration;

use base::Backoff;

use crate::room::GiveUpReason;

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(30);

/// A server that refused is asked again, but seldom: people must change something first.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// A server that drained takes a moment to come back.
const AFTER_DRAIN: Duration = Duration::from_secs(2);

/// After a link that lasted this long, the next failure starts from the shortest wait.
pub(crate) const GOOD: Duration = Duration::from_secs(10);

/// How a link ended, or why dialling it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is not to be tried again.
    Over(GiveUpReason),
    /// The server refused this worker.
    Refused(String),
    /// The server accepts no worker for a moment, not even with the right secret.
    Throttled(String),
    /// The server drained, as it had announced.
    Drained(String),
    /// The link was given up because of a job that was itself at fault, and neither end is.
    Spent(String),
    /// The link broke, or could not be made.
    Lost {
        reason: String,
        /// How long it lasted after the registration; `None` if it was never registered.
        stood: Option<Duration>,
    },
}

/// The step that follows the end of a link.
#[derive(Debug)]
pub(crate) enum LinkEnd {
    /// The link should be dialled again.
    Again(Outcome),
    /// The worker ends; this many jobs were not finished.
    Left(usize),
}

/// The end of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerEnd {
    /// How many requests were not finished when the time to drain was over.
    pub cut_off: usize,
    /// Why a room was given up, if one was; the reason of the last one, if there were several.
    pub gave_up: Option<GiveUpReason>,
}

/// The waits between the links to one server.
#[derive(Debug)]
pub(crate) struct Reconnect(Backoff);

impl Reconnect {
    pub(crate) const fn new() -> Self {
        Self(Backoff::new(FIRST, LAST))
    }

    /// The wait after this outcome. `random` is any random number.
    pub(crate) fn after(&mut self, outcome: &Outcome, random: u32) -> Duration {
        match outcome {
            Outcome::Over(_) | Outcome::Refused(_) => AFTER_REFUSAL,
            Outcome::Throttled(_) => FIRST,
            Outcome::Drained(_) => {
                self.0.reset();
                AFTER_DRAIN + Duration::from_millis(u64::from(random % 500))
            }
            Outcome::Spent(_) => {
                self.0.reset();
                self.0.next(random)
            }
            Outcome::Lost { stood, .. } => {
                if stood.is_some_and(|stood| stood >= GOOD) {
                    self.0.reset();
                }
                self.0.next(random)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn lost(stood: Option<u64>) -> Outcome {
        let stood = match stood {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => None,
        };
        Outcome::Lost { reason: String::new(), stood }
    }

    fn after(reconnect: &mut Reconnect, outcome: &Outcome) -> u64 {
        reconnect.after(outcome, u32::MAX).as_secs()
    }

    #[test]
    fn waits_double_until_a_link_was_good() {
        let mut reconnect = Reconnect::new();
        let waits: Vec<_> = (0..7).map(|_| after(&mut reconnect, &lost(None))).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(after(&mut reconnect, &lost(Some(9))), 30);
        assert_eq!(after(&mut reconnect, &lost(Some(10))), 1);
        assert_eq!(after(&mut reconnect, &lost(None)), 2);
    }

    #[test]
    fn bad_jobs_keep_a_link_away_no_longer_than_the_shortest_wait() {
        let mut reconnect = Reconnect::new();
        after(&mut reconnect, &lost(None));
        let spent = Outcome::Spent(String::new());
        let waits: Vec<_> = (0..5).map(|_| after(&mut reconnect, &spent)).collect();
        assert_eq!(waits, [1; 5]);
    }

    #[test]
    fn a_refusal_waits_long_and_a_drain_shortly() {
        let mut reconnect = Reconnect::new();
        assert_eq!(after(&mut reconnect, &Outcome::Refused(String::new())), 30);
        let throttled = Outcome::Throttled(String::new());
        assert_eq!([after(&mut reconnect, &throttled), after(&mut reconnect, &throttled)], [1, 1]);
        for random in [0, 499, u32::MAX] {
            let wait = reconnect.after(&Outcome::Drained(String::new()), random).as_millis();
            assert!((2000..2500).contains(&wait), "{wait}");
        }
    }
}
