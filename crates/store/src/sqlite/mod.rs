//! The database file: SQLite with a write-ahead log.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{ModelName, Scope};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use rusqlite_migration::{M, Migrations};

use crate::{ModelStore, SeenModel, StoreError};

/// How long a writer waits for another process.
const BUSY: Duration = Duration::from_secs(5);

/// Each step from one version to the next, never changed once released.
const STEPS: &[M<'_>] = &[M::up(
    "CREATE TABLE models (
        scope TEXT NOT NULL,
        model TEXT NOT NULL,
        first_seen INTEGER NOT NULL,
        last_seen INTEGER NOT NULL,
        PRIMARY KEY (scope, model)
    ) STRICT, WITHOUT ROWID;",
)];

/// A store in a database file.
pub struct SqliteStore {
    connection: Mutex<Connection>,
    path: String,
}

impl SqliteStore {
    /// Opens the file, makes it if there is none, and brings it up to date.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be opened, is no database, or is of a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let shown = path.display().to_string();
        let database = |source| StoreError::Database {
            path: shown.clone(),
            hint: "check that the directory is writable and the file is intact; moving the file \
                   away lets Warren start with an empty one",
            source,
        };
        let mut connection = Connection::open(path).map_err(database)?;
        prepare(&connection).map_err(database)?;
        let migrate = Migrations::from_slice(STEPS).to_latest(&mut connection);
        migrate.map_err(|source| StoreError::Migration { path: shown.clone(), source })?;
        Ok(Self { connection: Mutex::new(connection), path: shown })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, source: rusqlite::Error) -> StoreError {
        let hint = "what is to be kept is kept in memory, and written when it can be";
        StoreError::Database { path: self.path.clone(), hint, source }
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", "ON")
}

impl ModelStore for SqliteStore {
    fn load_models(&self) -> Result<Vec<SeenModel>, StoreError> {
        load_models(&self.lock()).map_err(|error| self.error(error))
    }

    fn save_models(&self, models: &[SeenModel], oldest: u64) -> Result<(), StoreError> {
        let save = |connection: &mut Connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            save_models(&transaction, models, oldest)?;
            transaction.commit()
        };
        save(&mut self.lock()).map_err(|error| self.error(error))
    }
}

fn load_models(connection: &Connection) -> rusqlite::Result<Vec<SeenModel>> {
    let mut query = connection.prepare("SELECT scope, model, first_seen, last_seen FROM models")?;
    let rows = query.query_map([], |row| {
        Ok(SeenModel {
            scope: Scope::from(row.get::<_, String>(0)?),
            model: ModelName::from(row.get::<_, String>(1)?),
            first: row.get::<_, i64>(2)?.unsigned_abs(),
            last: row.get::<_, i64>(3)?.unsigned_abs(),
        })
    })?;
    rows.collect()
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

fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
