//! How far the time for deleting by age has come: with the server whose time has come the farthest.

use super::{
    PostgresStore,
    columns::{signed, unsigned},
};
use crate::{AgeStore, StoreError};

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
