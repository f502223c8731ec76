//! How far the time for deleting by age has come: with the server whose time has come the farthest.

use super::{PostgresStore, columns::signed};
use crate::{AgeStore, StoreError};

impl AgeStore for PostgresStore {
    fn load_reached(&self) -> Result<Option<u64>, StoreError> {
        self.read(async move |client| {
            let row = client.query_opt("SELECT at FROM reached", &[]).await?;
            let at: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
            Ok(at.map(i64::unsigned_abs))
        })
    }

    fn save_reached(&self, at_ms: u64) -> Result<(), StoreError> {
        let save = "INSERT INTO reached VALUES (0, $1)
            ON CONFLICT (id) DO UPDATE SET at = GREATEST(reached.at, $1)";
        self.write(async move |transaction| {
            transaction.execute(save, &[&signed(at_ms)]).await?;
            Ok(())
        })
    }
}
