//! The cluster's time, as this member sees it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    entry::{NodeId, Stamp},
    input::LinkId,
};

/// A stamp's counter stays below this, so that it can be shown as the nanoseconds of a date.
const COUNTERS: u32 = 1_000_000;
/// A greater disagreement is reported to the operator.
pub(crate) const NOTABLE: Duration = Duration::from_secs(60);

/// This machine's wall clock, corrected by the lower median of its differences to the linked
/// members' clocks and of 0, its own difference. Of two clocks the slower counts, of more the
/// majority. So a clock that is an hour ahead does not move the other members, and its own machine
/// does not write stamps an hour ahead.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The wall clock of each linked member, and when it was read. These are times and not
    /// differences, so that a jump of this machine's wall clock is corrected at once.
    walls: BTreeMap<LinkId, (Duration, Instant)>,
}

impl Clock {
    pub(crate) fn note(&mut self, link: LinkId, wall: Duration, now: Instant) {
        self.walls.insert(link, (wall, now));
    }

    pub(crate) fn forget(&mut self, link: LinkId) {
        self.walls.remove(&link);
    }

    /// The cluster's time, since 1970.
    pub(crate) fn time(&self, now: Instant, wall: Duration) -> Duration {
        let own = micros(wall);
        let offsets = self.walls.values().map(|(their, at)| {
            micros(*their + now.saturating_duration_since(*at)).saturating_sub(own)
        });
        let mut offsets: Vec<i64> = offsets.chain([0]).collect();
        offsets.sort_unstable();
        let median = offsets.get((offsets.len() - 1) / 2).copied().unwrap_or_default();
        Duration::from_micros(u64::try_from(own.saturating_add(median)).unwrap_or_default())
    }

    /// By how much the own wall clock is away from the cluster's time.
    pub(crate) fn error(&self, now: Instant, wall: Duration) -> Duration {
        self.time(now, wall).abs_diff(wall)
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

/// A stamp of `time` that is above the one it replaces.
pub(crate) fn stamp(time: Duration, replaced: Option<&Stamp>, node: NodeId) -> Stamp {
    let wall_ms = u64::try_from(time.as_millis()).unwrap_or_default();
    match replaced {
        Some(old) if old.wall_ms >= wall_ms && old.counter + 1 < COUNTERS => {
            Stamp { wall_ms: old.wall_ms, counter: old.counter + 1, node }
        }
        Some(old) if old.wall_ms >= wall_ms => Stamp { wall_ms: old.wall_ms + 1, counter: 0, node },
        _ => Stamp { wall_ms, counter: 0, node },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn time(offsets: &[i64]) -> i64 {
        let (now, wall) = (Instant::now(), HOUR * 1000);
        let mut clock = Clock::default();
        for (link, offset) in (1..).zip(offsets) {
            let their = micros(wall) + offset * 1_000_000;
            clock.note(LinkId(link), Duration::from_micros(their.try_into().unwrap()), now);
        }
        (micros(clock.time(now, wall)) - micros(wall)) / 1_000_000
    }

    #[test]
    fn it_is_the_lower_median() {
        assert_eq!(time(&[]), 0);
        assert_eq!(time(&[3600]), 0, "of two the slower counts");
        assert_eq!(time(&[-3600]), -3600);
        assert_eq!(time(&[3600, 3601]), 3600, "the majority is ahead");
        assert_eq!(time(&[3600, -3600]), 0);
        assert_eq!(time(&[1, 2, 3600]), 1);
    }

    #[test]
    fn a_jump_of_the_own_clock_is_corrected_at_once() {
        let (now, wall) = (Instant::now(), HOUR * 1000);
        let mut clock = Clock::default();
        clock.note(LinkId(1), wall, now);
        clock.note(LinkId(2), wall, now);
        let later = now + Duration::from_secs(9);
        assert_eq!(clock.time(later, wall + HOUR), wall + Duration::from_secs(9));
        assert!(clock.error(later, wall + HOUR) > NOTABLE);
        clock.forget(LinkId(1));
        clock.forget(LinkId(2));
        assert_eq!(clock.time(later, wall + HOUR), wall + HOUR);
    }

    #[test]
    fn a_stamp_is_above_the_one_it_replaces() {
        let node = NodeId::from("a");
        let first = stamp(HOUR, None, node.clone());
        assert_eq!((first.wall_ms, first.counter), (3_600_000, 0));
        let second = stamp(HOUR / 2, Some(&first), node.clone());
        assert_eq!((second.wall_ms, second.counter), (3_600_000, 1));
        let full = Stamp { counter: COUNTERS - 1, ..second };
        let third = stamp(HOUR, Some(&full), node.clone());
        assert_eq!((third.wall_ms, third.counter), (3_600_001, 0));
        assert_eq!(stamp(HOUR * 2, Some(&third), node).wall_ms, 7_200_000);
    }
}
