//! The rounds of a task that looks after something at equal intervals.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Rounds at equal intervals. The first one is at once, the last one when the server stops.
pub(crate) struct Rounds {
    ticks: Interval,
    stop: CancellationToken,
    is_last: bool,
}

impl Rounds {
    pub(crate) fn new(every: Duration, stop: CancellationToken) -> Self {
        let mut ticks = interval(every);
        // After a round that took long, the next one comes a whole interval later.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, stop, is_last: false }
    }

    /// Waits for the next round. Returns `false` after the last one, when the server has stopped.
    pub(crate) async fn next(&mut self) -> bool {
        if self.is_last {
            return false;
        }
        tokio::select! {
            _ = self.ticks.tick() => {}
            () = self.stop.cancelled() => {}
        }
        // Decided before the round: a stop in the middle of a round is followed by one more, since that round may have
        // looked already.
        self.is_last = self.stop.is_cancelled();
        true
    }

    /// Whether the present round is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.is_last
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_round_is_at_once_and_the_last_one_is_that_of_the_stop() {
        let (stop, start) = (CancellationToken::new(), Instant::now());
        let mut rounds = Rounds::new(Duration::from_secs(10), stop.clone());
        for at in [0, 10, 20] {
            assert!(rounds.next().await && !rounds.is_last());
            assert_eq!(start.elapsed().as_secs(), at);
        }
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            stop.cancel();
        });
        assert!(rounds.next().await && rounds.is_last());
        assert_eq!(start.elapsed().as_secs(), 23);
        assert!(!rounds.next().await);
    }

    #[tokio::test]
    async fn after_a_stop_in_the_middle_of_a_round_there_is_one_more() {
        let stop = CancellationToken::new();
        let mut rounds = Rounds::new(Duration::from_secs(10), stop.clone());
        assert!(rounds.next().await);
        stop.cancel();
        assert!(!rounds.is_last());
        assert!(rounds.next().await && rounds.is_last());
        assert!(!rounds.next().await);
    }
}
