//! The schedule of the messages to a mesh relay. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::sort::Sort;

/// The time limit for a registration.
const REGISTERED_WITHIN: Duration = Duration::from_secs(10);

/// How long to wait for the challenge of a mesh relay that may be a Warren's. A Warren sends it at
/// once.
const CHALLENGED_WITHIN: Duration = Duration::from_secs(2);

/// The time after which an unanswered request for the list of nodes is repeated.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// How often this machine's offer is sent again.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// How often to check whether this machine's offer has changed. If it has, it is sent at once.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// How often a Warren's mesh relay is asked for the list of nodes. It announces changes on its own.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// How often a stock mesh relay is asked for the list of nodes.
const ASK_STOCK_EVERY: Duration = Duration::from_secs(30);

/// How long after news of a node the mesh relay is asked, so that one request covers several nodes.
const ASK_SOON: Duration = Duration::from_secs(1);

/// The shortest time between two such requests.
const ASK_AT_MOST: Duration = Duration::from_secs(5);

/// How often a mesh relay is pinged.
const PING_EVERY: Duration = Duration::from_secs(10);

/// A mesh relay that is silent for this long counts as dead.
pub(super) const DEAD: Duration = Duration::from_secs(25);

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this machine's offer.
    Register,
    /// Send it again if it has changed.
    Check,
    /// Ask for the list of nodes.
    Discover,
    /// Ping the mesh relay.
    Ping,
    /// The mesh relay was silent for too long.
    Dead,
    /// The mesh relay has not answered the registration in time.
    Unregistered,
}

/// The schedule of one connection.
#[derive(Debug)]
pub(super) struct Clock {
    ask_every: Duration,
    since: Instant,
    registered: bool,
    ping: Instant,
    register: Option<Instant>,
    check: Instant,
    discover: Option<Instant>,
    /// When the mesh relay was last asked for the list.
    last_request: Option<Instant>,
}

impl Clock {
    /// The schedule of a connection that has just been opened. A Warren's mesh relay gets nothing
    /// before its challenge: see [`Clock::challenged`].
    pub(super) fn new(now: Instant, sort: Sort) -> Self {
        Self {
            ask_every: ASK_STOCK_EVERY,
            since: now,
            registered: false,
            ping: now + PING_EVERY,
            register: match sort {
                Sort::Warren => None,
                Sort::Unclear => Some(now + CHALLENGED_WITHIN),
                Sort::Stock => Some(now),
            },
            check: now + CHECK_EVERY,
            discover: None,
            last_request: None,
        }
    }

    /// Notes that the challenge has come, so the mesh relay is a Warren's.
    pub(super) fn challenged(&mut self, now: Instant) {
        self.ask_every = ASK_EVERY;
        self.register = Some(now);
    }

    /// Notes that the mesh relay has registered this node. Returns whether that is new.
    pub(super) fn registered(&mut self, now: Instant) -> bool {
        let is_new = !std::mem::replace(&mut self.registered, true);
        if is_new {
            self.discover = Some(now);
            self.check = now + CHECK_EVERY;
        }
        is_new
    }

    /// Whether the mesh relay has registered this node.
    pub(super) fn is_registered(&self) -> bool {
        self.registered
    }

    /// Notes that a peer has come that was not listed, or whose offer has changed.
    pub(super) fn news(&mut self, now: Instant) {
        let earliest = self.last_request.map_or(now, |at| at + ASK_AT_MOST);
        let soon = earliest.max(now + ASK_SOON);
        if self.registered {
            self.discover = Some(self.discover.map_or(soon, |planned| planned.min(soon)));
        }
    }

    /// Notes that the list of nodes has come.
    pub(super) fn answered(&mut self, now: Instant) {
        self.discover = Some(now + self.ask_every);
    }

    /// Notes that the mesh relay accepts no requests for this time.
    pub(super) fn hold(&mut self, now: Instant, wait: Duration) {
        let until = now + wait;
        for due in [&mut self.register, &mut self.discover].into_iter().flatten() {
            *due = (*due).max(until);
        }
        self.check = self.check.max(until);
    }

    /// When the next step is due. `heard` is when the mesh relay last sent something.
    pub(super) fn next(&self, heard: Instant) -> Instant {
        let unregistered = (!self.registered).then_some(self.since + REGISTERED_WITHIN);
        let check = self.registered.then_some(self.check);
        let optional = [self.register, self.discover, check, unregistered];
        let first = self.ping.min(heard + DEAD);
        optional.into_iter().flatten().fold(first, Instant::min)
    }

    /// The next step that is due now. Call this until it returns `None`.
    pub(super) fn due(&mut self, now: Instant, heard: Instant) -> Option<Step> {
        if now.saturating_duration_since(heard) >= DEAD {
            return Some(Step::Dead);
        }
        if !self.registered && now.saturating_duration_since(self.since) >= REGISTERED_WITHIN {
            return Some(Step::Unregistered);
        }
        if self.register.is_some_and(|due| due <= now) {
            self.register = Some(now + TELL_EVERY);
            // A registration contains the offer, so there is nothing new to check for a while.
            self.check = now + CHECK_EVERY;
            return Some(Step::Register);
        }
        if self.registered && self.check <= now {
            self.check = now + CHECK_EVERY;
            return Some(Step::Check);
        }
        if self.discover.is_some_and(|due| due <= now) {
            self.last_request = Some(now);
            // It is repeated if no answer comes by then. An answer sets the next regular time.
            self.discover = Some(now + ANSWERED_WITHIN);
            return Some(Step::Discover);
        }
        if self.ping <= now {
            self.ping = now + PING_EVERY;
            return Some(Step::Ping);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of the first `seconds` seconds, when the relay answers at once and is heard
    /// all the time.
    fn history(sort: Sort, seconds: u64) -> Vec<(u64, Step)> {
        let start = Instant::now();
        let mut clock = Clock::new(start, sort);
        if sort == Sort::Warren {
            clock.challenged(start);
        }
        let (mut now, mut steps) = (start, Vec::new());
        while now <= start + Duration::from_secs(seconds) {
            while let Some(step) = clock.due(now, now) {
                match step {
                    Step::Register => _ = clock.registered(now),
                    Step::Discover => clock.answered(now),
                    _ => {}
                }
                steps.push(((now - start).as_secs(), step));
            }
            now = clock.next(now);
        }
        steps
    }

    fn times(steps: &[(u64, Step)], wanted: Step) -> Vec<u64> {
        steps.iter().filter(|(_, step)| *step == wanted).map(|(second, _)| *second).collect()
    }

    #[test]
    fn a_relay_gets_the_offer_every_minute_and_is_asked_as_its_sort_needs() {
        let steps = history(Sort::Stock, 130);
        assert_eq!(steps[..2], [(0, Step::Register), (0, Step::Discover)]);
        assert_eq!(times(&steps, Step::Register), [0, 60, 120]);
        assert_eq!(times(&steps, Step::Discover), [0, 30, 60, 90, 120]);
        assert_eq!(times(&steps, Step::Ping).len(), 13);
        assert_eq!(times(&steps, Step::Check)[..3], [5, 10, 15]);
        assert_eq!(times(&history(Sort::Warren, 130), Step::Discover), [0, 60, 120]);
    }

    #[test]
    fn a_relay_that_may_be_a_warrens_is_given_two_seconds_for_its_challenge() {
        let steps = history(Sort::Unclear, 70);
        assert_eq!(times(&steps, Step::Register), [2, 62]);
        assert_eq!(times(&steps, Step::Discover), [2, 32, 62]);
        let start = Instant::now();
        let mut clock = Clock::new(start, Sort::Unclear);
        let soon = start + Duration::from_millis(20);
        assert_eq!(clock.due(soon, soon), None);
        clock.challenged(soon);
        assert_eq!(clock.due(soon, soon), Some(Step::Register));
    }

    #[test]
    fn a_silent_relay_is_dead_within_30_seconds() {
        let start = Instant::now();
        let mut clock = Clock::new(start, Sort::Stock);
        clock.registered(start);
        let mut now = start;
        while clock.due(now, start) != Some(Step::Dead) {
            now = clock.next(start).max(now + Duration::from_millis(1));
        }
        assert_eq!((now - start).as_secs(), 25);
    }

    #[test]
    fn a_relay_that_does_not_register_is_given_up_after_ten_seconds() {
        let start = Instant::now();
        // A Warren's relay that never sends its challenge: nothing can be registered.
        let mut clock = Clock::new(start, Sort::Warren);
        assert_eq!(clock.due(start, start), None);
        let at = clock.next(start + Duration::from_secs(9));
        assert_eq!(at - start, REGISTERED_WITHIN);
        assert_eq!(clock.due(at, at), Some(Step::Unregistered));
    }

    #[test]
    fn many_that_come_at_once_are_asked_for_once_and_not_too_often() {
        let start = Instant::now();
        let second = |second| start + Duration::from_secs(second);
        let mut clock = Clock::new(start, Sort::Warren);
        clock.registered(start);
        assert_eq!(clock.due(start, start), Some(Step::Discover));
        clock.answered(start);
        for at in [1, 2, 3] {
            clock.news(second(at));
        }
        assert_eq!(clock.due(second(4), second(4)), None);
        assert_eq!(clock.due(second(5), second(5)), Some(Step::Check));
        assert_eq!(clock.due(second(5), second(5)), Some(Step::Discover));
        assert_eq!(clock.due(second(5), second(5)), None);
    }

    #[test]
    fn a_relay_that_asks_for_peace_gets_it() {
        let start = Instant::now();
        let mut clock = Clock::new(start, Sort::Stock);
        clock.registered(start);
        clock.hold(start, Duration::from_secs(8));
        assert_eq!(clock.due(start + Duration::from_secs(7), start), None);
        let later = start + Duration::from_secs(8);
        assert_eq!(clock.due(later, start), Some(Step::Register));
    }

    #[test]
    fn an_unanswered_question_is_asked_again() {
        let start = Instant::now();
        let mut clock = Clock::new(start, Sort::Warren);
        clock.registered(start);
        assert_eq!(clock.due(start, start), Some(Step::Discover));
        assert!(clock.next(start) <= start + ANSWERED_WITHIN);
        let later = start + ANSWERED_WITHIN;
        let steps: Vec<_> = std::iter::from_fn(|| clock.due(later, later)).collect();
        assert!(steps.contains(&Step::Discover), "{steps:?}");
    }
}
