//! When a mesh relay is dialled again. Pure.

use std::time::Duration;

use base::Backoff;

/// The first delay, and the longest one.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(60);

/// After a connection that lasted this long, earlier failures no longer count.
const GOOD: Duration = Duration::from_secs(60);

/// How long this node waits after it and another machine with the same key have replaced each other
/// twice within a minute. Otherwise they would do so every second, and neither would be of use.
const APART: Duration = Duration::from_secs(60);

/// When a mesh relay is dialled again.
#[derive(Debug)]
pub(super) struct Retry {
    backoff: Backoff,
    /// Whether this node's connection was replaced, and none has lasted since then.
    replaced: bool,
}

impl Retry {
    pub(super) fn new() -> Self {
        Self { backoff: Backoff::new(FIRST, LAST), replaced: false }
    }

    /// How long to wait after a connection that lasted for `stood`, or was not opened. `replaced`
    /// says that a connection with the same key has replaced it. `random` is any random number.
    pub(super) fn after(&mut self, stood: Duration, replaced: bool, random: u32) -> Duration {
        if stood >= GOOD {
            self.backoff.reset();
            self.replaced = false;
        }
        let delay = self.backoff.next(random);
        let is_repeated = replaced && std::mem::replace(&mut self.replaced, true);
        if is_repeated { delay.max(APART) } else { delay }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_grow_to_a_minute_and_start_again_after_a_good_minute() {
        let mut retry = Retry::new();
        let mut after = |stood| retry.after(stood, false, u32::MAX).as_secs();
        let delays: Vec<_> = (0..8).map(|_| after(Duration::ZERO)).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((after(59 * SECOND), after(60 * SECOND)), (60, 1));
    }

    #[test]
    fn two_machines_with_one_key_do_not_throw_each_other_out_every_second() {
        let mut retry = Retry::new();
        assert_eq!(retry.after(SECOND, true, u32::MAX), SECOND);
        // A try that failed in between changes nothing.
        retry.after(Duration::ZERO, false, 0);
        assert_eq!(retry.after(SECOND, true, 0), APART);
        assert_eq!(retry.after(SECOND, true, 0), APART);
        assert!(retry.after(GOOD, true, 0) < APART);
    }
}
