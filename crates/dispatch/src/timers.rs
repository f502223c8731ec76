//! The armed deadlines, in the order in which they come.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use base::{JobId, ProviderId};

/// The owner of a deadline; each has at most one. Deadlines of the same moment run in this order,
/// so that slots become free before jobs run out of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The next try of a provider's backend.
    Backend(ProviderId),
    /// The time limit of a cancelled job at a provider that lingers.
    Linger(ProviderId, JobId),
    /// The time at which a waiting job no longer waits for another provider: it may have this one
    /// load its model or compute its prompt.
    Load(ProviderId),
    /// The job's queue, busy, acknowledgement, request, idle or end time-out, by its state.
    Job(JobId),
    /// The end of the provider's grace while it drains.
    Grace(ProviderId),
    /// The end of the provider's rest.
    Rest(ProviderId),
}

/// All armed deadlines, each with a word for its reason.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Instant, Timer, &'static str)>,
    armed: BTreeMap<Timer, (Instant, &'static str)>,
}

impl Timers {
    /// Arms `timer` for `after` from `since`, replacing its earlier deadline. A deadline too far
    /// away for the clock never comes.
    pub(crate) fn arm(&mut self, timer: Timer, since: Instant, after: Duration, why: &'static str) {
        self.disarm(timer);
        if let Some(at) = since.checked_add(after) {
            self.armed.insert(timer, (at, why));
            self.due.insert((at, timer, why));
        }
    }

    /// Forgets the timer's deadline, if it has one.
    pub(crate) fn disarm(&mut self, timer: Timer) {
        if let Some((at, why)) = self.armed.remove(&timer) {
            self.due.remove(&(at, timer, why));
        }
    }

    /// When the timer is due.
    pub(crate) fn deadline(&self, timer: Timer) -> Option<Instant> {
        self.armed.get(&timer).map(|(at, _)| *at)
    }

    /// The next deadline and its timer.
    pub(crate) fn next(&self) -> Option<(Instant, &'static str)> {
        self.due.first().map(|(at, _, why)| (*at, *why))
    }

    /// Takes out the earliest timer that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let (_, timer, _) = *self.due.first().filter(|(at, ..)| *at <= now)?;
        // Disarmed before it is handled, since its handler may arm it again.
        self.disarm(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn come_in_order_and_once() {
        let start = Instant::now();
        let mut timers = Timers::default();
        let [a, b] = [1, 2].map(|bits| Timer::Rest(ProviderId::from_random(bits)));
        timers.arm(a, start, SECOND * 2, "late");
        timers.arm(b, start, SECOND, "early");
        assert_eq!(timers.next(), Some((start + SECOND, "early")));
        assert_eq!(timers.pop_due(start), None);
        assert_eq!(timers.pop_due(start + SECOND * 9), Some(b));
        assert_eq!(timers.pop_due(start + SECOND * 9), Some(a));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_new_deadline_replaces_the_old() {
        let start = Instant::now();
        let mut timers = Timers::default();
        let timer = Timer::Grace(ProviderId::from_random(1));
        timers.arm(timer, start, SECOND, "first");
        timers.arm(timer, start, SECOND * 3, "second");
        assert_eq!(timers.next(), Some((start + SECOND * 3, "second")));
        assert_eq!(timers.deadline(timer), Some(start + SECOND * 3));
    }

    #[test]
    fn never_is_no_deadline() {
        let mut timers = Timers::default();
        let timer = Timer::Grace(ProviderId::from_random(1));
        timers.arm(timer, Instant::now(), Duration::MAX, "never");
        assert_eq!(timers.next(), None);
    }
}
