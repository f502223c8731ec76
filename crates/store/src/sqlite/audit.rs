//! The audit log's table.

use rusqlite::{Connection, params};

use super::{SqliteStore, signed, unsigned};
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
        self.read(|connection| actions(connection, most))
    }
}

fn actions(connection: &Connection, most: usize) -> rusqlite::Result<Vec<Action>> {
    let mut query = connection
        .prepare("SELECT at, who, what, target, outcome FROM audit ORDER BY id DESC LIMIT ?1")?;
    let rows = query.query_map([signed(most as u64)], |row| {
        Ok(Action {
            at: unsigned(row.get(0)?),
            who: row.get(1)?,
            what: row.get(2)?,
            target: row.get(3)?,
            outcome: row.get(4)?,
        })
    })?;
    rows.collect()
}
