//! The ledger and the audit log. A row goes to the file first, and from there to the database, once. So rows are kept
//! while the database is away, and a server that is killed loses none that are in the file.

use std::{
    sync::{MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use super::SharedStore;
use crate::{
    Action, AuditStore, StoreError, UsageAnswer, UsageEntry, UsageQuery, UsageStore, WaitingRows,
    audit::MAX_ACTIONS,
};

/// The most rows of usage that wait, which take some 250 MB. Beyond that, the ledger keeps as many as it can in
/// memory.
const MAX_WAITING: usize = 1_000_000;

/// The most rows that are sent at once, and the fewest.
pub(super) const BATCH: usize = 1_000;
const FEWEST: usize = 16;

/// The rows that were sent to the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Rows that the database has taken.
    pub taken: usize,
    /// Rows that the database refuses for what is in them. They are dropped.
    pub refused: usize,
    /// How many rows still wait, of usage and of the audit log.
    pub left: u64,
}

impl SharedStore {
    /// How many rows of usage wait for the database.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits until rows are added, or for this long. Returns at once if some were added since the last wait.
    pub fn wait_for_rows(&self, most: Duration) {
        let come = self.come();
        let waited = self.rows.1.wait_timeout_while(come, most, |come| !*come);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Sends a batch of the rows that wait to the database.
    ///
    /// # Errors
    /// When the database is away, or the file cannot be read or written. Rows that were not noted as sent wait on.
    pub fn send(&self) -> Result<Delivery, StoreError> {
        let batch = self.batch.load(Ordering::Relaxed);
        let sent = self.send_some(batch);
        let next = if sent.is_ok() { batch * 2 } else { batch / 2 };
        self.batch.store(next.clamp(FEWEST, BATCH), Ordering::Relaxed);
        sent
    }

    fn send_some(&self, batch: usize) -> Result<Delivery, StoreError> {
        let actions = self.own.waiting_actions(batch)?;
        let of_actions = self.hand_over(&actions, |rows| self.database.take_actions(rows))?;
        let sent_actions = |last| self.own.sent_actions(last);
        let actions_left = actions.last().map_or(Ok(0), sent_actions)?;
        let usage = self.own.waiting_usage(batch)?;
        let of_usage = self.hand_over(&usage, |rows| self.database.take_usage(rows))?;
        let usage_left = usage.last().map_or(Ok(0), |last| self.sent_usage(last))?;
        Ok(Delivery {
            taken: of_actions.taken + of_usage.taken,
            refused: of_actions.refused + of_usage.refused,
            left: actions_left + usage_left,
        })
    }

    /// Takes rows of usage off the file that were sent. Returns how many still wait.
    fn sent_usage(&self, last: i64) -> Result<u64, StoreError> {
        let _counting = self.counting();
        let left = self.own.sent_usage(last)?;
        self.waiting.store(left, Ordering::Relaxed);
        Ok(left)
    }

    fn counting(&self) -> MutexGuard<'_, ()> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the database take rows. If it refuses a batch for what is in it, the batch is halved until only the rows at
    /// fault are left out.
    fn hand_over<T: Clone>(
        &self,
        waiting: &WaitingRows<T>,
        take: impl Fn(&WaitingRows<T>) -> Result<(), StoreError> + Copy,
    ) -> Result<Delivery, StoreError> {
        let len = waiting.rows.len();
        if len == 0 {
            return Ok(Delivery::default());
        }
        match self.note(take(waiting)) {
            Ok(()) => Ok(Delivery { taken: len, ..Delivery::default() }),
            Err(StoreError::Refused { .. }) if len == 1 => {
                Ok(Delivery { refused: 1, ..Delivery::default() })
            }
            Err(StoreError::Refused { .. }) => self.hand_over_halves(waiting, take),
            Err(error) => Err(error),
        }
    }

    fn hand_over_halves<T: Clone>(
        &self,
        waiting: &WaitingRows<T>,
        take: impl Fn(&WaitingRows<T>) -> Result<(), StoreError> + Copy,
    ) -> Result<Delivery, StoreError> {
        let (first, second) = waiting.rows.split_at(waiting.rows.len() / 2);
        let part =
            |rows: &[(i64, T)]| WaitingRows { source: waiting.source.clone(), rows: rows.to_vec() };
        let first = self.hand_over(&part(first), take)?;
        let second = self.hand_over(&part(second), take)?;
        let (taken, refused) = (first.taken + second.taken, first.refused + second.refused);
        Ok(Delivery { taken, refused, left: 0 })
    }

    pub(super) fn ring(&self) {
        *self.come() = true;
        self.rows.1.notify_all();
    }

    fn come(&self) -> MutexGuard<'_, bool> {
        self.rows.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UsageStore for SharedStore {
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let counting = self.counting();
        self.own.queue_usage(&self.source, entries, MAX_WAITING)?;
        self.waiting.fetch_add(entries.len() as u64, Ordering::Relaxed);
        drop(counting);
        self.ring();
        Ok(())
    }

    /// Answers from the rows that the database has taken.
    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError> {
        self.note(self.database.usage(query))
    }

    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError> {
        self.note(self.database.forget_usage(before_ms, most))
    }
}

impl AuditStore for SharedStore {
    fn add_action(&self, action: &Action) -> Result<(), StoreError> {
        self.own.queue_actions(&self.source, std::slice::from_ref(action), MAX_ACTIONS)?;
        self.ring();
        Ok(())
    }

    /// The actions that the database has taken.
    fn actions(&self, most: usize) -> Result<Vec<Action>, StoreError> {
        self.note(self.database.actions(most))
    }
}
