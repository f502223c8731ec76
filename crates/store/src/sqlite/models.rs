//! The table of models.

use base::{ModelName, Scope};
use rusqlite::{Transaction, params};

use super::{SqliteStore, signed, unsigned};
use crate::{ModelStore, SeenModel, StoreError};

impl ModelStore for SqliteStore {
    fn load_models(&self) -> Result<Vec<SeenModel>, StoreError> {
        let all = "SELECT scope, model, first_seen, last_seen FROM models";
        self.rows(all, [], |row| {
            Ok(SeenModel {
                scope: Scope::from(row.get::<_, String>(0)?),
                model: ModelName::from(row.get::<_, String>(1)?),
                first: unsigned(row.get(2)?),
                last: unsigned(row.get(3)?),
            })
        })
    }

    fn save_models(&self, models: &[SeenModel], oldest: u64) -> Result<(), StoreError> {
        self.write(|transaction| save_models(transaction, models, oldest))
    }
}

fn save_models(
    transaction: &Transaction<'_>,
    models: &[SeenModel],
    oldest: u64,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(
        "INSERT OR REPLACE INTO models (scope, model, first_seen, last_seen)
         VALUES (?1, ?2, ?3, ?4)",
    )?;
    for seen in models {
        let (scope, model) = (seen.scope.as_str(), seen.model.as_str());
        insert.execute(params![scope, model, signed(seen.first), signed(seen.last)])?;
    }
    let delete = "DELETE FROM models WHERE last_seen < ?1";
    transaction.execute(delete, [signed(oldest)]).map(drop)
}
