//! The ledger's tables: the rows, and their sums of each day; and the time for deleting by age.
//!
//! - `write`: adding and deleting rows
//! - `read`: queries

mod read;
pub(super) mod write;

use super::{
    PostgresStore, QUESTION,
    columns::{signed, unsigned},
};
use crate::{
    AgeStore, StoreError,
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

/// Of the times of several servers, the latest is stored.
impl AgeStore for PostgresStore {
    fn load_reached(&self) -> Result<Option<u64>, StoreError> {
        self.row("SELECT at FROM reached", Vec::new(), |row| unsigned(row, "at"))
    }

    fn save_reached(&self, at_ms: u64) -> Result<(), StoreError> {
        let save = "INSERT INTO reached VALUES (0, $1)
            ON CONFLICT (id) DO UPDATE SET at = GREATEST(reached.at, $1)";
        self.change(save, vec![Box::new(signed(at_ms))]).map(drop)
    }
}
