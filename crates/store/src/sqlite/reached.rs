//! How far the time for deleting by age has come.

use rusqlite::OptionalExtension;

use super::{SqliteStore, signed, unsigned, usage::tables::ID_BITS};
use crate::{AgeStore, StoreError};

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
