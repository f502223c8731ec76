//! The ledger's tables, and the time for deleting by age.
//!
//! - `tables`: their columns, and the migration steps
//! - `write`: adding and deleting rows
//! - `read`: queries

mod read;
pub(super) mod tables;
mod write;

use rusqlite::OptionalExtension;

use self::tables::ID_BITS;
use super::{SqliteStore, signed, unsigned};
use crate::{
    AgeStore, StoreError,
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

impl AgeStore for SqliteStore {
    fn load_reached(&self) -> Result<Option<u64>, StoreError> {
        let newest = format!("SELECT id >> {ID_BITS} FROM usage_rows ORDER BY id DESC LIMIT 1");
        self.read(|connection| {
            let one = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).optional();
            let at: Option<i64> = one("SELECT at FROM reached")?.or(one(&newest)?);
            Ok(at.map(unsigned))
        })
    }

    fn save_reached(&self, at_ms: u64) -> Result<(), StoreError> {
        let insert = "INSERT OR REPLACE INTO reached VALUES (0, ?1)";
        self.change(insert, [signed(at_ms)]).map(drop)
    }
}
