//! Whether the link in a relay session lives, and whether anybody needs it. Pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::peer::{DEGRADED, GONE};

/// How often a Warren that opened a session says how it is doing.
const BEAT: Duration = Duration::from_secs(10);

/// How often a stock peer is told, as Macs do among each other.
const STOCK_BEAT: Duration = Duration::from_secs(15);

/// A stock node says nothing while it reads a long prompt, and may take so long for a whole answer.
const STOCK_GONE: Duration = Duration::from_secs(300);

/// How long a session may be unused before the end that opened it closes it.
const IDLE: Duration = Duration::from_secs(300);

/// So is one that is not needed, as there is a link on the local network.
const IDLE_BESIDE_DIRECT: Duration = Duration::from_secs(10);

/// One that a stock peer opened and forgot is closed, too.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Whether this end opened it.
    pub(super) ours: bool,
    /// Whether the other end is a Warren.
    pub(super) warren: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A heartbeat is due.
    Beat,
    /// Nothing was heard for too long to ask anything over it.
    Degraded,
    /// It was silent for too long and has to be closed.
    Gone,
    /// Nobody needs it.
    Idle,
}

/// How the link in a relay session is doing.
#[derive(Debug)]
pub(super) struct Pulse {
    kind: Kind,
    heard: Instant,
    beat: Instant,
    degraded: bool,
}

impl Pulse {
    /// That of a link which was opened just now.
    pub(super) fn new(now: Instant, kind: Kind) -> Self {
        Self { kind, heard: now, beat: now, degraded: false }
    }

    /// Something arrived. Whether the link was degraded before.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        self.heard = now;
        std::mem::take(&mut self.degraded)
    }

    /// The next step that is due now. Call it until there is none. `used` is the time of the last message
    /// other than a heartbeat, `near` whether there is a link on the local network.
    pub(super) fn due(&mut self, now: Instant, used: Instant, near: bool) -> Option<Step> {
        let silence = now.saturating_duration_since(self.heard);
        let unused = now.saturating_duration_since(used);
        if self.is_gone(silence) {
            return Some(Step::Gone);
        }
        if unused >= self.idle(near) {
            return Some(Step::Idle);
        }
        if self.kind.warren && silence >= DEGRADED && !self.degraded {
            self.degraded = true;
            return Some(Step::Degraded);
        }
        if !self.kind.ours || now < self.beat {
            return None;
        }
        self.beat = now + if self.kind.warren { BEAT } else { STOCK_BEAT };
        Some(Step::Beat)
    }

    /// Only the end that opened a session sends heartbeats, and the other answers.
    fn is_gone(&self, silence: Duration) -> bool {
        match self.kind {
            Kind { warren: true, .. } => silence >= GONE,
            Kind { ours, .. } => ours && silence >= STOCK_GONE,
        }
    }

    fn idle(&self, near: bool) -> Duration {
        match self.kind {
            Kind { ours: true, .. } if near => IDLE_BESIDE_DIRECT,
            Kind { ours: true, .. } => IDLE,
            Kind { warren: false, .. } => FORGOTTEN,
            Kind { warren: true, .. } => Duration::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done when nothing is heard or used, looking each second, and after how many.
    fn silence(ours: bool, warren: bool, near: bool) -> Vec<(u64, Step)> {
        let start = Instant::now();
        let mut pulse = Pulse::new(start, Kind { ours, warren });
        let mut steps = Vec::new();
        for second in 0..1_000 {
            while let Some(step) = pulse.due(start + Duration::from_secs(second), start, near) {
                steps.push((second, step));
                if matches!(step, Step::Gone | Step::Idle) {
                    return steps;
                }
            }
        }
        steps
    }

    /// The last thing that is done when the other end is heard every ten seconds.
    fn unused(ours: bool, warren: bool, near: bool) -> Option<(u64, Step)> {
        let start = Instant::now();
        let mut pulse = Pulse::new(start, Kind { ours, warren });
        for second in 0..1_000 {
            let now = start + Duration::from_secs(second);
            if second % 10 == 0 {
                pulse.heard(now);
            }
            while let Some(step) = pulse.due(now, start, near) {
                if step != Step::Beat {
                    return Some((second, step));
                }
            }
        }
        None
    }

    #[test]
    fn a_silent_warren_is_degraded_after_15_seconds_and_gone_after_30() {
        let expected = [
            (0, Step::Beat),
            (10, Step::Beat),
            (15, Step::Degraded),
            (20, Step::Beat),
            (30, Step::Gone),
        ];
        assert_eq!(silence(true, true, false), expected);
        assert_eq!(silence(false, true, false), [(15, Step::Degraded), (30, Step::Gone)]);
    }

    #[test]
    fn a_stock_node_may_be_silent_for_as_long_as_an_answer_takes() {
        assert_eq!(silence(true, false, false).last(), Some(&(300, Step::Gone)));
        assert_eq!(silence(false, false, false), [(600, Step::Idle)]);
    }

    #[test]
    fn the_opening_end_closes_an_unused_session() {
        assert_eq!(unused(true, true, false), Some((300, Step::Idle)));
        assert_eq!(unused(true, true, true), Some((10, Step::Idle)));
        assert_eq!(unused(false, true, true), None);
        assert_eq!(unused(true, false, false), Some((300, Step::Idle)));
    }

    #[test]
    fn any_message_mends_a_degraded_link() {
        let start = Instant::now();
        let mut pulse = Pulse::new(start, Kind { ours: false, warren: true });
        assert_eq!(pulse.due(start + DEGRADED, start, false), Some(Step::Degraded));
        assert!(pulse.heard(start + DEGRADED) && !pulse.heard(start + DEGRADED));
    }
}
