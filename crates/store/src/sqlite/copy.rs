//! Copies of database files, while others write to them.

use std::{fs::OpenOptions, path::Path, time::Duration};

use base::system::Rights;
use rusqlite::{Connection, OpenFlags, backup::Backup};

use super::{BUSY, look_through, schema::STEPS};
use crate::StoreError;

/// How often a copy that finds the database locked is tried again, and the pause before each try.
const TRIES: u32 = 20;
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Copies a database into a new file that only the file's owner can read. The copy is the database as it was at one
/// moment. A process that writes to the database is not held up; what it writes meanwhile is not in the copy. Checks
/// the copy. Blocks.
///
/// # Errors
/// [`StoreError`] when it cannot be read or written, or is damaged.
pub fn copy(path: &Path, to: &Path) -> Result<(), StoreError> {
    let (shown, target) = (path.display().to_string(), to.display().to_string());
    let failed = |source| StoreError::of(&shown, source);
    let from = open(path).map_err(failed)?;
    // Made here, because SQLite would make a file that everybody can read.
    let made = OpenOptions::new().write(true).create_new(true).private().open(to);
    made.map_err(|error| {
        StoreError::of(&target, rusqlite::Error::ToSqlConversionFailure(error.into()))
    })?;
    let mut copy = open(to).map_err(|source| StoreError::of(&target, source))?;
    let copied = all_pages(&from, &mut copy);
    copied.map_err(failed)?;
    look_through(&copy, path)?;
    close(copy).map_err(|source| StoreError::of(&target, source))
}

/// Copies all pages in one step. So they are of one moment, and a writer does not make the copy begin again.
fn all_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    let backup = Backup::new(from, to)?;
    let mut tries = 0;
    loop {
        match backup.step(-1)? {
            rusqlite::backup::StepResult::Done => return Ok(()),
            _ if tries == TRIES => {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    None,
                ));
            }
            _ => pause(),
        }
        tries += 1;
    }
}

#[expect(clippy::disallowed_methods, reason = "it blocks, as its callers know")]
fn pause() {
    std::thread::sleep(TRY_AGAIN);
}

/// Checks that a database file is whole, and not of a newer Warren. Changes nothing in it. Blocks.
///
/// # Errors
/// [`StoreError`] when it is not, or cannot be read.
pub fn check(path: &Path) -> Result<(), StoreError> {
    let shown = path.display().to_string();
    let failed = |source| StoreError::of(&shown, source);
    let connection = open(path).map_err(failed)?;
    look_through(&connection, path)?;
    let version: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if usize::try_from(version).is_ok_and(|version| version <= STEPS.len()) {
        return close(connection).map_err(failed);
    }
    Err(StoreError::TooNew { path: shown })
}

/// Opens a file, which must be there. The connection may write, although it only reads: so it can maintain the
/// write-ahead log, and leaves no files behind.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

fn close(connection: Connection) -> rusqlite::Result<()> {
    connection.close().map_err(|(_, error)| error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;

    #[test]
    fn a_copy_is_the_database_at_one_moment_while_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let (path, to) = (directory.path().join("a.db"), directory.path().join("b.db"));
        let store = SqliteStore::open(&path).unwrap();
        let write = |number: i64| {
            let both = format!(
                "CREATE TABLE IF NOT EXISTS pair (a, b); INSERT INTO pair VALUES ({number}, {number});"
            );
            store.write(|transaction| transaction.execute_batch(&both)).unwrap();
        };
        write(1);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| (2..300).for_each(write));
            copy(&path, &to).unwrap();
            writing.join().unwrap();
        });
        let copied = Connection::open(&to).unwrap();
        let (count, wrong): (i64, i64) = copied
            .query_row("SELECT count(*), count(CASE WHEN a <> b THEN 1 END) FROM pair", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert!((1..300).contains(&count) && wrong == 0, "{count}, {wrong}");
        drop(copied);
        check(&to).unwrap();
        SqliteStore::open(&to).unwrap();
        assert!(copy(&path, &to).is_err(), "it is never written over");
    }

    #[test]
    fn a_damaged_database_and_a_newer_one_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        drop(SqliteStore::open(&path).unwrap());
        let newer = Connection::open(&path).unwrap();
        newer.pragma_update(None, "user_version", 999).unwrap();
        drop(newer);
        assert!(matches!(check(&path), Err(StoreError::TooNew { .. })));
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].fill(0x5a);
        std::fs::write(&path, bytes).unwrap();
        let to = directory.path().join("b.db");
        assert!(matches!(
            copy(&path, &to),
            Err(StoreError::Damaged { .. } | StoreError::Database { .. })
        ));
        assert!(check(&directory.path().join("none.db")).is_err());
        assert!(!directory.path().join("none.db").exists(), "it is not made");
    }
}
