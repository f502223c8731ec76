//! The audit log's table.

use rusqlite::params;

use super::{SqliteStore, signed, unsent::rows};
use crate::{
    StoreError,
    audit::{Action, AuditStore, MAX_ACTIONS},
};

impl AuditStore for SqliteStore {
    fn add_action(&self, action: &Action) -> Result<(), StoreError> {
        let Action { at, who, what, target, outcome } = action;
        let insert = "INSERT INTO audit (at, who, what, target, outcome)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        self.write(|transaction| {
            transaction.execute(insert, params![signed(*at), who, what, target, outcome])?;
            let oldest = transaction.last_insert_rowid() - signed(MAX_ACTIONS as u64);
            transaction.execute("DELETE FROM audit WHERE id <= ?1", [oldest]).map(drop)
        })
    }

    fn actions(&self, most: usize) -> Result<Vec<Action>, StoreError> {
        let newest = "SELECT * FROM audit ORDER BY id DESC LIMIT ?1";
        self.rows(newest, [signed(most as u64)], rows::action)
    }
}
