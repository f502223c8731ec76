//! The ledger's tables: the rows, and their sums by the day.
//!
//! - `write`: adding and deleting rows
//! - `read`: queries

mod read;
pub(super) mod write;

use super::{PostgresStore, QUESTION, columns::signed};
use crate::{
    StoreError,
    usage::{UsageAnswer, UsageEntry, UsageQuery, UsageStore},
};

impl UsageStore for PostgresStore {
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        let entries = entries.to_vec();
        self.write(async move |transaction| write::add(transaction, &entries).await)
    }

    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError> {
        let query = query.clone();
        self.look(QUESTION, async move |snapshot| read::answer(snapshot, &query).await)
    }

    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError> {
        let (before, most) = (signed(before_ms), signed(most as u64));
        self.write(async move |transaction| write::forget(transaction, before, most).await)
    }
}
