//! Whether a link lives, judged from what arrives over it and from nothing else. Pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::peer::{DEGRADED, GONE};

/// How often a heartbeat is sent.
pub(super) const BEAT: Duration = Duration::from_secs(5);

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A heartbeat is due.
    Beat,
    /// Nothing was heard for too long to ask anything over it.
    Degraded,
    /// It was silent for too long and has to be closed.
    Gone,
}

/// How a link is doing.
#[derive(Debug)]
pub(super) struct Health {
    heard: Instant,
    beat: Instant,
    degraded: bool,
}

impl Health {
    /// That of a link which was greeted just now. The first heartbeat is due at once.
    pub(super) fn new(now: Instant) -> Self {
        Self { heard: now, beat: now, degraded: false }
    }

    /// Something arrived. Whether the link was degraded before.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        self.heard = now;
        std::mem::take(&mut self.degraded)
    }

    /// When something is to be done at the latest.
    pub(super) fn next(&self) -> Instant {
        let silence = if self.degraded { GONE } else { DEGRADED };
        self.beat.min(self.heard + silence)
    }

    /// The next step that is due now. Call it until there is none.
    pub(super) fn due(&mut self, now: Instant) -> Option<Step> {
        let silence = now.saturating_duration_since(self.heard);
        if silence >= GONE {
            return Some(Step::Gone);
        }
        if silence >= DEGRADED && !self.degraded {
            self.degraded = true;
            return Some(Step::Degraded);
        }
        if now < self.beat {
            return None;
        }
        self.beat = now + BEAT;
        Some(Step::Beat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps and their seconds, when messages come after the seconds in `heard`.
    fn history(heard: &[u64]) -> Vec<(u64, Step)> {
        let start = Instant::now();
        let mut health = Health::new(start);
        let mut heard = heard.iter().map(|second| start + Duration::from_secs(*second)).peekable();
        let mut steps = Vec::new();
        loop {
            let now = health.next();
            if let Some(at) = heard.next_if(|at| *at <= now) {
                health.heard(at);
                continue;
            }
            while let Some(step) = health.due(now) {
                steps.push(((now - start).as_secs(), step));
                if step == Step::Gone || steps.len() > 20 {
                    return steps;
                }
            }
        }
    }

    #[test]
    fn a_silent_link_is_degraded_after_15_seconds_and_gone_after_30() {
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
        let start = Instant::now();
        let mut health = Health::new(start);
        assert!(!health.heard(start));
        assert_eq!(health.due(start + DEGRADED), Some(Step::Degraded));
        assert!(health.heard(start + DEGRADED));
        assert!(!health.heard(start + DEGRADED));
    }

    #[test]
    fn time_that_jumps_ends_a_link_and_does_not_send_many_heartbeats() {
        let start = Instant::now();
        let mut health = Health::new(start);
        assert_eq!(health.due(start), Some(Step::Beat));
        let later = start + Duration::from_secs(12);
        assert_eq!((health.due(later), health.due(later)), (Some(Step::Beat), None));
        assert_eq!(health.due(start + Duration::from_secs(3_600)), Some(Step::Gone));
    }
}
