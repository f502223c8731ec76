//! Whether a link is alive: when heartbeats are due, and when a link is degraded, gone or idle.
//! Pure: it depends only on the times at which messages arrive.
//!
//! | Link | Heartbeat | Degraded | Gone | Idle |
//! | --- | --- | --- | --- | --- |
//! | on the local network | 5 s | 15 s | 30 s | never |
//! | relay session with a Warren, opened here | 10 s | 15 s | 30 s | 300 s, or 10 s beside a LAN link |
//! | relay session with a Warren, opened there | answers only | 15 s | 30 s | never |
//! | relay session with a stock peer, opened here | 15 s | never | 300 s | 300 s, or 10 s beside a LAN link |
//! | relay session with a stock peer, opened there | answers only | never | never | 600 s |

use std::time::Duration;

use tokio::time::Instant;

/// How long a link may be silent before its peer gets no more requests over it.
const DEGRADED: Duration = Duration::from_secs(15);

/// How long a link may be silent before it is closed.
pub(crate) const GONE: Duration = Duration::from_secs(30);

/// The same for stock nodes, which may be silent while they read a long prompt or prepare a whole
/// answer.
const STOCK_GONE: Duration = Duration::from_secs(300);

/// How often a heartbeat goes over a link on the local network.
const LAN_BEAT: Duration = Duration::from_secs(5);
/// How often one goes through a relay session with a Warren. Less often than on the LAN, since each
/// costs the mesh relay.
const SESSION_BEAT: Duration = Duration::from_secs(10);

/// How often one goes through a relay session with a stock peer: as often as stock Macs send them.
const STOCK_BEAT: Duration = Duration::from_secs(15);

/// How long a relay session may be unused before the end that opened it closes it.
const IDLE: Duration = Duration::from_secs(300);

/// The same if there is also a link on the local network, which is used instead.
const IDLE_BESIDE_LAN: Duration = Duration::from_secs(10);

/// The same for a relay session that a stock peer opened, since that peer may forget to close it.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// The kind of a link, as far as its liveness depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A TCP connection on the local network.
    Lan,
    /// A relay session.
    Session {
        /// Whether this end opened it.
        ours: bool,
        /// Whether the other end is a Warren.
        warren: bool,
    },
}

impl Kind {
    /// How often this end sends a heartbeat. In a relay session only the end that opened it sends
    /// them; the other end answers.
    fn beat(self) -> Option<Duration> {
        match self {
            Self::Lan => Some(LAN_BEAT),
            Self::Session { ours: false, .. } => None,
            Self::Session { warren: true, .. } => Some(SESSION_BEAT),
            Self::Session { warren: false, .. } => Some(STOCK_BEAT),
        }
    }

    fn degraded(self) -> Option<Duration> {
        (!matches!(self, Self::Session { warren: false, .. })).then_some(DEGRADED)
    }

    fn gone(self) -> Option<Duration> {
        match self {
            Self::Lan | Self::Session { warren: true, .. } => Some(GONE),
            Self::Session { ours, .. } => ours.then_some(STOCK_GONE),
        }
    }

    /// After what time without use the link is idle. `near` says whether there is a link on the
    /// local network to the same peer.
    fn idle(self, near: bool) -> Option<Duration> {
        match self {
            Self::Session { ours: true, .. } if near => Some(IDLE_BESIDE_LAN),
            Self::Session { ours: true, .. } => Some(IDLE),
            Self::Session { warren: false, .. } => Some(FORGOTTEN),
            Self::Session { .. } | Self::Lan => None,
        }
    }
}

/// The use of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// When the last message other than a heartbeat passed.
    pub(crate) last: Instant,
    /// Whether there is a link on the local network to the same peer.
    pub(crate) near: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A heartbeat is due.
    Beat,
    /// The link was silent for too long to send requests over it.
    Degraded,
    /// It was silent for too long and has to be closed.
    Gone,
    /// It is not needed and has to be closed.
    Idle,
}

/// The liveness of one link.
#[derive(Debug)]
pub(crate) struct Liveness {
    kind: Kind,
    heard: Instant,
    beat: Instant,
    degraded: bool,
}

impl Liveness {
    /// The liveness of a link that has just been opened. The first heartbeat is due at once.
    pub(crate) fn new(now: Instant, kind: Kind) -> Self {
        Self { kind, heard: now, beat: now, degraded: false }
    }

    /// Records that a message arrived. Returns whether the link was degraded before.
    pub(crate) fn heard(&mut self, now: Instant) -> bool {
        self.heard = now;
        std::mem::take(&mut self.degraded)
    }

    /// When the next step of a link on the local network is due.
    pub(crate) fn next(&self) -> Instant {
        let silence = if self.degraded { GONE } else { DEGRADED };
        self.beat.min(self.heard + silence)
    }

    /// The next step that is due. Call this until it returns `None`.
    pub(crate) fn due(&mut self, now: Instant, usage: Usage) -> Option<Step> {
        let silence = now.saturating_duration_since(self.heard);
        let unused = now.saturating_duration_since(usage.last);
        let reached = |limit: Option<Duration>, time| limit.is_some_and(|limit| time >= limit);
        if reached(self.kind.gone(), silence) {
            return Some(Step::Gone);
        }
        if reached(self.kind.idle(usage.near), unused) {
            return Some(Step::Idle);
        }
        if !self.degraded && reached(self.kind.degraded(), silence) {
            self.degraded = true;
            return Some(Step::Degraded);
        }
        let every = self.kind.beat().filter(|_| now >= self.beat)?;
        // The next one is counted from now and not from when this one was due, so that one
        // heartbeat is enough after a pause.
        self.beat = now + every;
        Some(Step::Beat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn in_use(now: Instant) -> Usage {
        Usage { last: now, near: false }
    }

    /// The steps of a LAN link and their seconds, when messages arrive after the seconds in `heard`.
    fn history(heard: &[u64]) -> Vec<(u64, Step)> {
        let start = Instant::now();
        let mut link = Liveness::new(start, Kind::Lan);
        let mut heard = heard.iter().map(|second| start + seconds(*second)).peekable();
        let mut steps = Vec::new();
        loop {
            let now = link.next();
            if let Some(at) = heard.next_if(|at| *at <= now) {
                link.heard(at);
                continue;
            }
            while let Some(step) = link.due(now, in_use(now)) {
                steps.push(((now - start).as_secs(), step));
                if step == Step::Gone || steps.len() > 20 {
                    return steps;
                }
            }
        }
    }

    /// The steps of a relay session that is not used, looking each second, until it is closed. The other
    /// end is heard every `heard` seconds.
    fn session(ours: bool, warren: bool, near: bool, heard: u64) -> Vec<(u64, Step)> {
        let start = Instant::now();
        let mut link = Liveness::new(start, Kind::Session { ours, warren });
        let mut steps = Vec::new();
        for second in 0..1_000 {
            let now = start + seconds(second);
            if second > 0 && second % heard == 0 {
                link.heard(now);
            }
            while let Some(step) = link.due(now, Usage { last: start, near }) {
                steps.push((second, step));
                if matches!(step, Step::Gone | Step::Idle) {
                    return steps;
                }
            }
        }
        steps
    }

    const NEVER: u64 = 10_000;

    #[test]
    fn a_silent_lan_link_is_degraded_after_15_seconds_and_gone_after_30() {
        let beats = |from: u64, to| (from..to).step_by(5).map(|second| (second, Step::Beat));
        let mut expected: Vec<_> = beats(0, 15).collect();
        expected.push((15, Step::Degraded));
        expected.extend(beats(15, 30));
        expected.push((30, Step::Gone));
        assert_eq!(history(&[]), expected);
    }

    #[test]
    fn any_message_counts_and_mends_a_degraded_link() {
        let steps = history(&[14, 28, 50, 60]);
        let of = |wanted| steps.iter().filter(move |(_, step)| *step == wanted);
        let degraded: Vec<_> = of(Step::Degraded).map(|(second, _)| *second).collect();
        assert_eq!(degraded, [43, 75]);
        assert_eq!(of(Step::Gone).map(|(second, _)| *second).collect::<Vec<_>>(), [90]);
    }

    #[test]
    fn a_link_says_whether_it_has_recovered() {
        for kind in [Kind::Lan, Kind::Session { ours: false, warren: true }] {
            let start = Instant::now();
            let mut link = Liveness::new(start, kind);
            assert!(!link.heard(start), "{kind:?}");
            assert_eq!(link.due(start + DEGRADED, in_use(start)), Some(Step::Degraded), "{kind:?}");
            assert!(link.heard(start + DEGRADED) && !link.heard(start + DEGRADED), "{kind:?}");
        }
    }

    #[test]
    fn time_that_jumps_ends_a_link_and_does_not_send_many_heartbeats() {
        let start = Instant::now();
        let mut link = Liveness::new(start, Kind::Lan);
        assert_eq!(link.due(start, in_use(start)), Some(Step::Beat));
        let later = start + seconds(12);
        let steps = (link.due(later, in_use(later)), link.due(later, in_use(later)));
        assert_eq!(steps, (Some(Step::Beat), None));
        assert_eq!(link.due(start + seconds(3_600), in_use(later)), Some(Step::Gone));
    }

    #[test]
    fn a_silent_warren_in_a_session_is_degraded_after_15_seconds_and_gone_after_30() {
        let expected = [
            (0, Step::Beat),
            (10, Step::Beat),
            (15, Step::Degraded),
            (20, Step::Beat),
            (30, Step::Gone),
        ];
        assert_eq!(session(true, true, false, NEVER), expected);
        let expected = [(15, Step::Degraded), (30, Step::Gone)];
        assert_eq!(session(false, true, false, NEVER), expected);
    }

    #[test]
    fn a_stock_node_may_be_silent_for_as_long_as_an_answer_takes() {
        assert_eq!(session(true, false, false, NEVER).last(), Some(&(300, Step::Gone)));
        assert_eq!(session(false, false, false, NEVER), [(600, Step::Idle)]);
    }

    #[test]
    fn the_opening_end_closes_an_unused_session() {
        let end = |ours, warren, near| {
            session(ours, warren, near, 10).into_iter().find(|(_, step)| *step != Step::Beat)
        };
        assert_eq!(end(true, true, false), Some((300, Step::Idle)));
        assert_eq!(end(true, true, true), Some((10, Step::Idle)));
        assert_eq!(end(false, true, true), None);
        assert_eq!(end(true, false, false), Some((300, Step::Idle)));
    }
}
