//! When which stream was aborted, by the clock of the machine, which all processes share.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use anyhow::Result;
use bytes::Bytes;
use tokio::{sync::Notify, time::timeout};

use crate::http1;

/// Aborts remembered; with more, those of the lowest numbers are forgotten.
const MOST: usize = 100_000;

const LONGEST_WAIT: u64 = 60_000;

#[derive(Debug, Default)]
pub(crate) struct Aborts {
    /// Number of the request → nanoseconds since 1970.
    seen: Mutex<BTreeMap<u64, u64>>,
    news: Notify,
}

impl Aborts {
    /// A guard that notes an abort of request `id` when it is dropped unfinished.
    pub(crate) fn guard(self: &Arc<Self>, id: u64) -> Guard {
        Guard { id, aborts: (id != 0).then(|| self.clone()) }
    }

    /// The aborts numbered `from` and up, as soon as they are `count`, or after `wait`.
    async fn since(&self, from: u64, count: usize, wait: Duration) -> BTreeMap<u64, u64> {
        let enough = async {
            loop {
                let news = self.news.notified();
                if self.lock().range(from..).count() >= count {
                    return;
                }
                news.await;
            }
        };
        let _ = timeout(wait, enough).await;
        self.lock().range(from..).map(|(&id, &when)| (id, when)).collect()
    }

    fn note(&self, id: u64) {
        let mut seen = self.lock();
        seen.insert(id, now());
        if seen.len() > MOST {
            seen.pop_first();
        }
        drop(seen);
        self.news.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes an abort when it is dropped before [`Guard::finish`].
#[derive(Debug)]
pub(crate) struct Guard {
    id: u64,
    aborts: Option<Arc<Aborts>>,
}

impl Guard {
    pub(crate) fn finish(&mut self) {
        self.aborts = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(aborts) = self.aborts.take() {
            aborts.note(self.id);
        }
    }
}

/// Answers `from=ID&count=N&wait_ms=MS` with an object of request number → nanoseconds.
pub(crate) async fn answer(aborts: &Aborts, query: &str) -> Bytes {
    let value = |key: &str| -> u64 {
        let pair = query.split('&').filter_map(|pair| pair.split_once('=')).find(|at| at.0 == key);
        pair.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    };
    let wait = Duration::from_millis(value("wait_ms").min(LONGEST_WAIT));
    let count = usize::try_from(value("count")).unwrap_or(usize::MAX);
    let seen = aborts.since(value("from"), count, wait).await;
    serde_json::to_vec(&seen).unwrap_or_default().into()
}

/// Asks the backend at `addr` for the aborts numbered `from` and up; it answers as soon as there
/// are `count`, or after `wait`.
pub(crate) async fn fetch(
    addr: SocketAddr,
    from: u64,
    count: usize,
    wait: Duration,
) -> Result<BTreeMap<u64, u64>> {
    let path = format!("/bench/aborts?from={from}&count={count}&wait_ms={}", wait.as_millis());
    let body = http1::get(addr, &path, wait + Duration::from_secs(10)).await?;
    Ok(serde_json::from_slice(&body)?)
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_is_dropped_unfinished_is_an_abort() {
        let aborts = Arc::new(Aborts::default());
        drop(aborts.guard(0));
        drop(aborts.guard(1));
        drop(aborts.guard(2));
        aborts.guard(3).finish();
        let seen = aborts.since(2, 1, Duration::from_secs(5)).await;
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [2]);
    }

    #[tokio::test]
    async fn memory_of_aborts_is_bounded() {
        let aborts = Arc::new(Aborts::default());
        for id in 1..=MOST as u64 + 5 {
            drop(aborts.guard(id));
        }
        let seen = aborts.since(0, 0, Duration::ZERO).await;
        assert_eq!((seen.len(), seen.first_key_value().unwrap().0), (MOST, &6));
    }

    #[tokio::test(start_paused = true)]
    async fn an_asker_waits_no_longer_than_it_said() {
        let body = answer(&Aborts::default(), "from=1&count=1&wait_ms=100").await;
        assert_eq!(&body[..], b"{}");
    }
}
