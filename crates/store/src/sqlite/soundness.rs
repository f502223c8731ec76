//! Whether a running server's database can be trusted to keep what is written.
//!
//! Every write fails while the database's files are not in their places, or the database is damaged. Writes go on once
//! the database has been looked through without a finding.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base::error::chain;
use rusqlite::{Connection, ErrorCode};

use super::{
    ALWAYS_LOOKED_THROUGH, LOOKED_THROUGH, SqliteStore, connect,
    files::{Files, Wrong},
    lock, look_through, reader,
};
use crate::StoreError;

pub(super) struct Soundness {
    files: Files,
    problem: Mutex<Option<Problem>>,
}

/// Why writes fail.
#[derive(Debug, Clone)]
enum Problem {
    /// The files are not where they were.
    Misplaced(String),
    /// SQLite found the content damaged.
    Damaged(String),
    /// The system could not read or write. The next write is tried all the same.
    Failing(String),
}

impl Soundness {
    pub(super) fn of(path: &Path) -> Self {
        Self { files: Files::of(path), problem: Mutex::default() }
    }

    fn problem(&self) -> MutexGuard<'_, Option<Problem>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SqliteStore {
    /// Why writes fail or cannot be trusted, and what to do; `None` while all is well. Does not wait.
    pub fn problem(&self) -> Option<String> {
        let problem = self.soundness.problem().clone()?;
        Some(match problem {
            Problem::Misplaced(problem) => chain(&self.misplaced(problem)),
            Problem::Damaged(problem) => chain(&self.damaged(problem)),
            Problem::Failing(words) => words,
        })
    }

    /// Looks at the files, and repairs what can be repaired: if nothing but the write-ahead log is gone, it is made
    /// again. A database up to 4 MiB, and with `thoroughly` one up to 64 MiB, is looked through for damage. Blocks;
    /// called every few seconds. Returns the same as [`SqliteStore::problem`].
    pub fn look(&self, thoroughly: bool) -> Option<String> {
        match self.soundness.files.check() {
            Ok(()) => self.look_inside(thoroughly),
            Err(Wrong::GoneBeside(words)) => {
                self.set(Problem::Misplaced(words));
                self.open_again();
            }
            Err(Wrong::Other(words)) => self.set(Problem::Misplaced(words)),
        }
        self.problem()
    }

    fn look_inside(&self, thoroughly: bool) {
        let len = std::fs::metadata(&self.path).map_or(u64::MAX, |file| file.len());
        let is_turn = len <= ALWAYS_LOOKED_THROUGH || (thoroughly && len <= LOOKED_THROUGH);
        let (in_doubt, is_due) = match &*self.soundness.problem() {
            Some(Problem::Misplaced(_)) => (true, true),
            Some(Problem::Damaged(_)) => (true, thoroughly || is_turn),
            Some(Problem::Failing(_)) | None => (false, is_turn),
        };
        if !is_due {
            return;
        }
        // A new connection has no pages in memory: it sees what the next start would see.
        let looked = match reader(&self.path) {
            Ok(connection) => look_through(&connection, &self.path),
            Err(source) => Err(StoreError::of(&self.path.display().to_string(), source)),
        };
        match looked {
            Ok(()) if in_doubt => *self.soundness.problem() = None,
            Ok(()) => {}
            Err(StoreError::Damaged { problem, .. }) => self.set(Problem::Damaged(problem)),
            Err(StoreError::Database { source, .. }) if in_doubt => {
                self.set(Problem::Damaged(source.to_string()));
            }
            Err(StoreError::Database { source, .. }) => drop(self.failed(source)),
            Err(_) => {}
        }
    }

    /// Fails if what is written now would be lost at the next start, or the database is damaged.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if let Err(Wrong::GoneBeside(words) | Wrong::Other(words)) = self.soundness.files.check() {
            self.set(Problem::Misplaced(words));
        }
        match self.soundness.problem().clone() {
            Some(Problem::Misplaced(problem)) => Err(self.misplaced(problem)),
            Some(Problem::Damaged(problem)) => Err(self.damaged(problem)),
            Some(Problem::Failing(_)) | None => Ok(()),
        }
    }

    /// The error of a statement, noted if it says that the database cannot be trusted.
    pub(super) fn failed(&self, source: rusqlite::Error) -> StoreError {
        let code = source.sqlite_error_code();
        let words = source.to_string();
        let error = StoreError::of(&self.path.display().to_string(), source);
        match code {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                self.set(Problem::Damaged(words));
            }
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::DiskFull
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly,
            ) => {
                self.set(Problem::Failing(chain(&error)));
            }
            _ => {}
        }
        error
    }

    /// Notes that a write succeeded: a failure of the system is over.
    pub(super) fn succeeded(&self) {
        let mut problem = self.soundness.problem();
        if matches!(*problem, Some(Problem::Failing(_))) {
            *problem = None;
        }
    }

    /// Moves the content of the lost write-ahead log, which SQLite still has open, into the database, and opens that
    /// again with a new log. If this fails, the next look tries it again.
    fn open_again(&self) {
        let (mut writer, mut reader) = (lock(&self.writer), lock(&self.reader));
        let is_busy = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let moved = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], is_busy);
        let none = [Connection::open_in_memory(), Connection::open_in_memory()];
        let (Ok(0), [Ok(no_reader), Ok(no_writer)]) = (moved, none) else { return };
        // Both are closed before the new ones are opened, which otherwise would use the lost log's index.
        (*reader, *writer) = (no_reader, no_writer);
        match connect(&self.path) {
            Ok(_) if !self.soundness.files.renew(&self.path) => {}
            Ok((new_reader, new_writer)) => {
                (*reader, *writer) = (new_reader, new_writer);
                *self.soundness.problem() = None;
            }
            Err(error) => self.set(Problem::Damaged(chain(&error))),
        }
    }

    fn set(&self, new: Problem) {
        let mut problem = self.soundness.problem();
        // A failure of the system does not replace damage, which stays until the database is looked through again.
        if !matches!((&*problem, &new), (Some(Problem::Damaged(_)), Problem::Failing(_))) {
            *problem = Some(new);
        }
    }

    fn misplaced(&self, problem: String) -> StoreError {
        StoreError::Misplaced { path: self.path.display().to_string(), problem }
    }

    fn damaged(&self, problem: String) -> StoreError {
        StoreError::Damaged { path: self.path.display().to_string(), problem }
    }
}
