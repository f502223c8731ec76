//! Which events are on their way, to how many watchers, and how long they took.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use super::{EventTimes, stream::Stream};
use crate::backend;

const BUFFER: usize = 64 << 10;

pub(super) struct Board {
    state: Mutex<Progress>,
    /// One for all: they are many, and one thread reads them.
    buffer: Mutex<Vec<u8>>,
    all: Notify,
}

#[derive(Default)]
struct Progress {
    /// When each event on its way was sent, by its number.
    sent: BTreeMap<u32, u64>,
    left: u64,
    told: EventTimes,
}

impl Board {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), buffer: Mutex::new(vec![0; BUFFER]), all: Notify::new() }
    }

    /// Waits for this many arrivals of the next events.
    pub(super) fn expect(&self, arrivals: u64) {
        let mut state = self.state();
        state.sent.clear();
        state.left = arrivals;
    }

    pub(super) fn sent(&self, number: u32, at: u64) {
        self.state().sent.insert(number, at);
    }

    /// Waits until all have arrived. What has not within `limit` has failed.
    pub(super) async fn all_arrived(&self, limit: Duration) {
        let waiting = timeout(limit, async {
            while self.state().left > 0 {
                self.all.notified().await;
            }
        });
        if waiting.await.is_err() {
            let mut state = self.state();
            let left = std::mem::take(&mut state.left);
            state.told.failures.add_many("an event did not arrive", left);
        }
    }

    /// Reads a stream to its end; returns why it ended.
    pub(super) async fn follow(&self, stream: &mut Stream) -> String {
        let mut last = None;
        loop {
            let seen = |number, arrived| self.seen(&mut last, number, arrived);
            match stream.read(&self.buffer, seen).await {
                Ok(true) => {}
                Ok(false) => return "a stream ended".to_owned(),
                Err(e) => return format!("{e:#}"),
            }
        }
    }

    pub(super) fn lost(&self, why: &str) {
        self.state().told.failures.add(why);
    }

    pub(super) fn take(&self) -> EventTimes {
        std::mem::take(&mut *self.state()).told
    }

    /// A watcher has read an event; the one before was `last`.
    fn seen(&self, last: &mut Option<u32>, number: u32, arrived: Option<u64>) {
        let mut state = self.state();
        if last.replace(number).is_some_and(|last| last >= number) {
            state.told.failures.add("an event twice or out of order");
        } else if state.seen(number, arrived) {
            self.all.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, Progress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// Whether this was the last expected arrival.
    fn seen(&mut self, number: u32, arrived: Option<u64>) -> bool {
        let Some(&sent) = self.sent.get(&number) else {
            self.told.failures.add("an event too late");
            return false;
        };
        let now = backend::now();
        self.told.events += 1;
        self.told.unstamped += u64::from(arrived.is_none());
        let since = |at: u64| Duration::from_nanos(at.saturating_sub(sent));
        self.told.arrived.add(since(arrived.unwrap_or(now)));
        self.told.read.add(since(now));
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_event_that_does_not_arrive_or_arrives_twice_is_a_failure() {
        let board = Board::new();
        board.expect(3);
        board.sent(7, 1_000);
        let (mut one, mut other) = (None, None);
        board.seen(&mut one, 7, Some(2_000));
        board.seen(&mut one, 7, Some(2_000));
        board.seen(&mut other, 7, None);
        board.seen(&mut other, 8, None);
        board.all_arrived(Duration::from_secs(1)).await;
        let told = board.take();
        let failures: Vec<_> = told.failures.iter().collect();
        let expected = [
            ("an event did not arrive", 1),
            ("an event too late", 1),
            ("an event twice or out of order", 1),
        ];
        assert_eq!((failures.as_slice(), told.unstamped), (expected.as_slice(), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_is_everywhere_once_all_have_read_it() {
        let board = Board::new();
        board.expect(2);
        board.sent(0, backend::now());
        board.seen(&mut None, 0, None);
        board.seen(&mut None, 0, None);
        board.all_arrived(Duration::from_secs(1)).await;
        assert_eq!(board.take().failures.total(), 0);
    }
}
