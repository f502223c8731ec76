//! The table of the workspace's facts.

use rusqlite::{Transaction, params};

use super::SqliteStore;
use crate::{
    StoreError,
    workspace::{Change, Fact, WorkspaceStore},
};

impl WorkspaceStore for SqliteStore {
    fn load_facts(&self, kind: &str) -> Result<Vec<Fact>, StoreError> {
        let all = "SELECT id, json FROM workspace WHERE kind = ?1 ORDER BY id";
        self.rows(all, [kind], |row| {
            Ok(Fact { kind: kind.to_owned(), id: row.get(0)?, json: row.get(1)? })
        })
    }

    fn change_facts(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.write(|transaction| changes.iter().try_for_each(|change| apply(transaction, change)))
    }
}

fn apply(transaction: &Transaction<'_>, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::Keep(Fact { kind, id, json }) => {
            let mut keep = transaction.prepare_cached(
                "INSERT INTO workspace (kind, id, json) VALUES (?1, ?2, ?3)
                    ON CONFLICT (kind, id) DO UPDATE SET json = excluded.json",
            )?;
            keep.execute(params![kind, id, json]).map(drop)
        }
        Change::Forget { kind, id } => {
            let mut forget =
                transaction.prepare_cached("DELETE FROM workspace WHERE kind = ?1 AND id = ?2")?;
            forget.execute(params![kind, id]).map(drop)
        }
    }
}
