//! Computes when a tick is due: once no change has come for a while, or at intervals while changes keep coming.

use std::time::Duration;

use tokio::time::Instant;

/// The quiet time before a tick, and the least time between ticks.
const QUIET: Duration = Duration::from_millis(300);
/// The longest time that a change waits for quiet.
const MOST: Duration = Duration::from_secs(1);

/// Changes that await a tick.
#[derive(Debug, Default)]
pub(super) struct Debounce {
    /// The times of the first and the last change.
    pending: Option<(Instant, Instant)>,
    ticked: Option<Instant>,
}

impl Debounce {
    pub(super) fn note(&mut self, now: Instant) {
        let first = self.pending.map_or(now, |(first, _)| first);
        self.pending = Some((first, now));
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let (first, last) = self.pending?;
        let due = (last + QUIET).min(first + MOST);
        Some(self.ticked.map_or(due, |ticked| due.max(ticked + QUIET)))
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.pending = None;
        self.ticked = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn one_change_is_told_after_quiet() {
        let now = Instant::now();
        let mut debounce = Debounce::default();
        assert_eq!(debounce.due(), None);
        debounce.note(now);
        assert_eq!(debounce.due(), Some(now + ms(300)));
        debounce.note(now + ms(200));
        assert_eq!(debounce.due(), Some(now + ms(500)));
        debounce.tick(now + ms(500));
        assert_eq!(debounce.due(), None);
    }

    #[test]
    fn constant_change_is_told_once_a_second() {
        let now = Instant::now();
        let mut debounce = Debounce::default();
        (0..100).for_each(|n| debounce.note(now + ms(n * 10)));
        assert_eq!(debounce.due(), Some(now + ms(1000)));
    }

    proptest! {
        #[test]
        fn ticks_are_apart_and_no_change_waits_longer_than_both_together(
            gaps in proptest::collection::vec(0u64..700, 1..60),
        ) {
            let start = Instant::now();
            let mut debounce = Debounce::default();
            let (mut now, mut ticks) = (start, Vec::new());
            for gap in gaps {
                let next = now + ms(gap);
                while let Some(due) = debounce.due().filter(|due| *due <= next) {
                    let (first, _) = debounce.pending.unwrap();
                    prop_assert!(due - first <= MOST);
                    debounce.tick(due);
                    ticks.push(due);
                }
                now = next;
                debounce.note(now);
            }
            prop_assert!(debounce.due().is_some());
            prop_assert!(ticks.windows(2).all(|pair| pair[1] - pair[0] >= QUIET));
        }
    }
}
