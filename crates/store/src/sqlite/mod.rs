//! The database file: SQLite with a write-ahead log.
//!
//! One connection writes and another reads, so that a long query of the ledger does not hold up
//! writers.
//!
//! - `keys`, `invitations`, `page_sessions`, `usage`, `audit`, `models`: a table each
//! - `schema`: all tables, by the steps that made them
//! - [`copy`]: copies of files, while other processes write to them
//! - `files`, `soundness`: whether the open files are still the ones at their paths, and whole
//! - `export`: what is taken along into a database that several servers share
//! - `unsent`: rows that wait for that database
//! - `responses`: responses and conversations that clients asked to keep

mod audit;
pub mod copy;
mod export;
mod files;
mod invitations;
mod keys;
mod models;
mod page_sessions;
mod responses;
mod rooms;
mod schema;
mod soundness;
mod unsent;
mod usage;
mod workspace;

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Params, Row, Transaction, TransactionBehavior,
    params, types::Type,
};
use rusqlite_migration::{Error as MigrationError, MigrationDefinitionError, Migrations};

pub use self::unsent::UnsentSum;
use self::{schema::STEPS, soundness::Soundness};
use crate::{Changes, StoreError, usage::days::signed};

/// How long a connection waits for another that has locked the database.
const BUSY: Duration = Duration::from_secs(2);

/// A database up to this size, in bytes, is checked for damage when it is opened, and now and then.
const LOOKED_THROUGH: u64 = 64 * 1024 * 1024;

/// A database up to this size, in bytes, is checked at every look, which takes some milliseconds.
const ALWAYS_LOOKED_THROUGH: u64 = 4 * 1024 * 1024;

/// A store in a database file.
pub struct SqliteStore {
    /// Declared before `writer`, and so closed before it: the connection that is closed last moves the write-ahead log
    /// into the file, and must be able to write.
    reader: Mutex<Connection>,
    writer: Mutex<Connection>,
    path: PathBuf,
    soundness: Soundness,
}

impl SqliteStore {
    /// Opens the file, or creates it, and migrates it to this version.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be opened or written, is damaged or not a database, or is
    /// of a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let (reader, writer) = connect(path)?;
        let (soundness, path) = (Soundness::of(path), path.to_owned());
        Ok(Self { reader: Mutex::new(reader), writer: Mutex::new(writer), path, soundness })
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        read(&lock(&self.reader)).map_err(|source| self.failed(source))
    }

    /// The records of the rows that a query finds.
    fn rows<T, P: Params>(
        &self,
        query: &str,
        which: P,
        record: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(|connection| connection.prepare(query)?.query_map(which, record)?.collect())
    }

    /// The record of the row that a query finds, if there is one.
    fn row<T, P: Params>(
        &self,
        query: &str,
        which: P,
        record: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.read(|connection| connection.query_row(query, which, record).optional())
    }

    /// Carries out a statement. Returns how many rows it has changed.
    fn change<P: Params>(&self, statement: &str, values: P) -> Result<usize, StoreError> {
        self.write(|transaction| transaction.execute(statement, values))
    }

    /// Carries out a statement for each id, with the time when it was last used.
    fn touch<'a>(
        &self,
        statement: &str,
        used: impl Iterator<Item = (&'a str, u64)>,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut update = transaction.prepare(statement)?;
            for (id, at) in used {
                update.execute(params![id, signed(at)])?;
            }
            Ok(())
        })
    }

    /// Takes over changes of a table from the store that this one is a copy of. `save` writes one record.
    fn copy<T>(
        &self,
        table: &str,
        changes: &Changes<T>,
        save: impl Fn(&Transaction<'_>, &T) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            if changes.whole {
                transaction.execute(&format!("DELETE FROM {table}"), [])?;
            }
            changes.records.iter().try_for_each(|record| save(transaction, record))
        })
    }

    /// Writes in one transaction. Fails if the files are no longer in their places: then the next start would not find
    /// what was written. So they are checked before and after.
    fn write<T>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let write = |connection: &mut Connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let written = write(&transaction)?;
            transaction.commit()?;
            Ok(written)
        };
        let mut writer = lock(&self.writer);
        self.check()?;
        let written = write(&mut writer).map_err(|source| self.failed(source))?;
        self.succeeded();
        self.check()?;
        Ok(written)
    }
}

/// A reader and a writer of a file, whose tables are brought up to date.
fn connect(path: &Path) -> Result<(Connection, Connection), StoreError> {
    let shown = path.display().to_string();
    let failed = |source| StoreError::of(&shown, source);
    let mut writer = Connection::open(path).map_err(failed)?;
    check(&writer, path)?;
    prepare(&writer).map_err(failed)?;
    migrate(&mut writer, &shown)?;
    Ok((reader(path).map_err(failed)?, writer))
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a read-only or damaged file before anything is changed in it.
fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let shown = path.display().to_string();
    let failed = |source| StoreError::of(&shown, source);
    // Without the right to write, SQLite silently opens a file read-only.
    if connection.is_readonly("main").map_err(failed)? {
        return Err(StoreError::ReadOnly { path: shown });
    }
    if std::fs::metadata(path).is_ok_and(|file| file.len() > LOOKED_THROUGH) {
        return Ok(());
    }
    look_through(connection, path)
}

/// Looks for damage in the whole database.
fn look_through(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let path = path.display().to_string();
    let found = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let problem = connection.query_row("PRAGMA quick_check(1)", [], found);
    match problem.map_err(|source| StoreError::of(&path, source))? {
        problem if problem == "ok" => Ok(()),
        problem => Err(StoreError::Damaged { path, problem }),
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", "ON")
}

fn migrate(connection: &mut Connection, path: &str) -> Result<(), StoreError> {
    let path = path.to_owned();
    match Migrations::from_slice(STEPS).to_latest(connection) {
        Ok(()) => Ok(()),
        Err(MigrationError::MigrationDefinition(MigrationDefinitionError::DatabaseTooFarAhead)) => {
            Err(StoreError::TooNew { path })
        }
        Err(source) => Err(StoreError::Migration { path, source }),
    }
}

fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(path, flags)?;
    reader.busy_timeout(BUSY)?;
    Ok(reader)
}

/// A column's text as a value.
fn parsed<T>(text: &str) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let wrong = |error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error));
    text.parse().map_err(wrong)
}

/// A number from a column that only holds results of [`signed`].
fn unsigned(number: i64) -> u64 {
    number.unsigned_abs()
}
