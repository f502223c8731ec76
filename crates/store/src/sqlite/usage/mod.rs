//! The ledger's tables.
//!
//! - `tables`: their columns, and the migration steps
//! - `write`: adding and deleting rows
//! - `read`: queries

mod read;
pub(super) mod tables;
mod write;

use super::{SqliteStore, signed};
use crate::{
    StoreError,
    usage::{UsageAnswer, UsageEntry, UsageQuery, UsageStore},
};

impl UsageStore for SqliteStore {
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        self.write(|transaction| write::add(transaction, entries))
    }

    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError> {
        self.read(|connection| read::answer(connection, query))
    }

    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError> {
        let (before, most) = (signed(before_ms), signed(most as u64));
        self.write(|transaction| write::forget(transaction, before, most))
    }
}
