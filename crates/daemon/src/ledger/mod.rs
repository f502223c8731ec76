//! The ledger: a row for each job that ended. The row is queued and written by one thread, so that no
//! request waits for the disk.
//!
//! While the database cannot be written, rows wait in memory, up to a bound, and the write is tried again.
//! Meanwhile the server reports that it is degraded. Beyond the bound, new rows are lost, and counted.
//!
//! - `row`: a job as a row

mod row;

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use access::Moment;
use api::Condition;
use base::{Backoff, Live, error::chain, millis};
use prometheus_client::metrics::{counter::Counter, gauge::Gauge};
use scheduler::{JobEnd, JobFacts, Observer};
use store::{AgeClock, StoreError, UsageEntry, UsageStore};

use crate::storage::aged;

/// The most rows that wait. A row takes some 300 bytes.
const MAX_WAITING: usize = 100_000;

/// The most rows of one transaction. It takes some milliseconds, in which writes of keys wait.
const BATCH: usize = 4_000;

/// How long rows are gathered before they are written. With the time for the write, a server that is killed loses the
/// rows of about 50 ms.
const GATHER: Duration = Duration::from_millis(40);

/// The delays of further tries while the database cannot be written.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));

/// The delay between two tries of a ledger that is closing.
const RETRY_CLOSING: Duration = Duration::from_millis(50);

/// How often old rows are looked for, and the most that are deleted at once.
const FORGET: (Duration, usize) = (Duration::from_secs(3_600), 5_000);

/// The pause between two such batches, for other writers.
const FORGET_MORE: Duration = Duration::from_millis(200);

/// The ledger's metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct LedgerMetrics {
    /// Rows that wait to be written.
    pub(crate) waiting: Gauge,
    /// Rows that were never written.
    pub(crate) lost: Counter,
}

/// How long rows are kept.
pub(crate) struct Retention {
    /// Zero: for ever.
    pub(crate) time: Live<Duration>,
    /// The clock by which rows get old.
    pub(crate) ages: Arc<AgeClock>,
}

/// The ledger of a running server.
pub(crate) struct Ledger {
    store: Arc<dyn UsageStore>,
    retention: Retention,
    metrics: LedgerMetrics,
    state: Mutex<Queue>,
    /// Notified when there are rows to write, and when the ledger is closing.
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<UsageEntry>,
    /// Why the last write failed.
    problem: Option<String>,
    /// Once the ledger is closing: when the writer has to be done.
    closing: Option<Instant>,
}

impl Ledger {
    /// A ledger in `store`. Nothing is written until [`Ledger::write`] runs.
    pub(crate) fn new(
        store: Arc<dyn UsageStore>,
        retention: Retention,
        metrics: LedgerMetrics,
    ) -> Self {
        Self { store, retention, metrics, state: Mutex::default(), wake: Condvar::new() }
    }

    /// Writes rows as they come, until it is closed. Blocks; one thread runs this.
    pub(crate) fn write(&self) {
        let mut retry = RETRY;
        let mut forget_at = Instant::now();
        while let Some(mut batch) = self.gather(forget_at) {
            match self.store.add_usage(batch.make_contiguous()) {
                Ok(()) => {
                    retry.reset();
                    self.recovered();
                }
                Err(error) if !self.keep(batch, &error, retry.next(rand::random())) => break,
                Err(_) => {}
            }
            if Instant::now() >= forget_at {
                forget_at = Instant::now() + self.forget(Moment::now());
            }
        }
        self.give_up();
    }

    /// Has the writer end. It may take `within` to write the rows that wait.
    pub(crate) fn close(&self, within: Duration) {
        self.lock().closing = Some(Instant::now() + within);
        self.wake.notify_all();
    }

    fn push(&self, entry: UsageEntry) {
        let mut state = self.lock();
        if state.waiting.len() >= MAX_WAITING {
            self.metrics.lost.inc();
            return;
        }
        state.waiting.push_back(entry);
        let len = state.waiting.len();
        drop(state);
        self.metrics.waiting.inc();
        // The writer waits for a first row, and then, for a while, for a whole batch. Other rows need not wake it.
        if len == 1 || len == BATCH {
            self.wake.notify_one();
        }
    }

    /// Waits for the next rows. Returns an empty batch if none have come by `until`, and `None` when the ledger is
    /// closing and no rows are left.
    fn gather(&self, until: Instant) -> Option<VecDeque<UsageEntry>> {
        let mut state = self.lock();
        if state.waiting.is_empty() && state.closing.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            state = self.wait(state, left, |state| state.waiting.is_empty());
        }
        if !state.waiting.is_empty() {
            state = self.wait(state, GATHER, |state| state.waiting.len() < BATCH);
        }
        if state.waiting.is_empty() && state.closing.is_some() {
            return None;
        }
        if state.waiting.len() <= BATCH {
            // Takes the queue itself: to copy rows under the lock would hold up the requests that add rows.
            return Some(std::mem::take(&mut state.waiting));
        }
        Some(state.waiting.drain(..BATCH).collect())
    }

    /// Waits while `condition` holds and the ledger is not closing.
    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, Queue>,
        longest: Duration,
        condition: impl Fn(&Queue) -> bool,
    ) -> MutexGuard<'a, Queue> {
        let waits = |state: &mut Queue| state.closing.is_none() && condition(state);
        let waited = self.wake.wait_timeout_while(state, longest, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn recovered(&self) {
        let mut state = self.lock();
        self.metrics.waiting.set(i64::try_from(state.waiting.len()).unwrap_or(i64::MAX));
        if state.problem.take().is_some() {
            tracing::info!("usage is written again");
        }
    }

    /// Puts rows back that could not be written, and waits before the next try. Returns false if there is no time for
    /// another try.
    fn keep(&self, batch: VecDeque<UsageEntry>, error: &StoreError, delay: Duration) -> bool {
        let problem = chain(error);
        let mut state = self.lock();
        if state.problem.is_none() {
            tracing::error!(problem, "usage cannot be written: it is kept in memory");
        }
        state.problem = Some(problem);
        batch.into_iter().rev().for_each(|entry| state.waiting.push_front(entry));
        let (closing, now) = (state.closing, Instant::now());
        if closing.is_some_and(|by| now >= by) {
            return false;
        }
        match closing {
            // Little time is left, and a failing database itself takes a while to answer.
            Some(_) => drop(self.wake.wait_timeout(state, RETRY_CLOSING)),
            None => drop(self.wait(state, delay, |_| true)),
        }
        true
    }

    /// Deletes some old rows. Returns how long to wait before the next call.
    fn forget(&self, now: Moment) -> Duration {
        let (seldom, most) = FORGET;
        let Retention { time, ages } = &self.retention;
        let span = time.copied();
        if span.is_zero() {
            return seldom;
        }
        match self.store.forget_usage(aged(ages, now).saturating_sub(millis(span)), most) {
            Ok(forgotten) if forgotten == most => FORGET_MORE,
            Ok(_) => seldom,
            Err(error) => {
                tracing::warn!(problem = chain(&error), "old usage is not forgotten");
                seldom
            }
        }
    }

    fn give_up(&self) {
        let lost = std::mem::take(&mut self.lock().waiting).len();
        if lost > 0 {
            self.metrics.lost.inc_by(lost as u64);
            tracing::error!(lost, "usage of the last jobs could not be written and is lost");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Ledger {
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        self.push(row::entry(job, ended));
    }
}

impl Condition for Ledger {
    fn degraded(&self) -> Option<String> {
        let state = self.lock();
        let problem = state.problem.as_ref()?;
        let (waiting, lost) = (state.waiting.len(), self.metrics.lost.get());
        Some(format!(
            "usage cannot be written: {problem}; {waiting} rows wait in memory, {lost} are lost"
        ))
    }
}

#[cfg(test)]
mod tests;
