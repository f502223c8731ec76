//! The database file: what outlives a process, and what is refused and left alone.

use std::path::Path;

use rusqlite::Connection;
use store::{ModelStore, SqliteStore, StoreError, UsageQuery, UsageStore, UsageSums};

use super::models::seen;

fn refused(path: &Path) -> StoreError {
    match SqliteStore::open(path) {
        Ok(_) => panic!("opened"),
        Err(error) => error,
    }
}

#[test]
fn a_database_outlives_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    SqliteStore::open(&path).unwrap().save_models(&[seen("a", 1, 2)], 0).unwrap();
    assert_eq!(SqliteStore::open(&path).unwrap().load_models().unwrap(), [seen("a", 1, 2)]);
}

/// Whoever copies the file of a stopped server has everything.
#[test]
fn a_closed_database_is_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let store = SqliteStore::open(&path).unwrap();
    store.save_models(&[seen("a", 1, 2)], 0).unwrap();
    store.load_models().unwrap();
    drop(store);
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

/// A ledger that was begun before there were sums by the day has them afterwards.
#[test]
fn a_ledger_without_sums_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    drop(SqliteStore::open(&path).unwrap());
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "DROP TABLE usage_days;
         DROP TABLE participants;
         DROP TABLE rooms;
         ALTER TABLE keys DROP COLUMN room;
         PRAGMA user_version = 4;
         INSERT INTO usage (at, job, key, model, api, outcome, prompt_tokens, estimated, queue_ms,
            total_ms, streaming, requeues)
         VALUES (5, 'r', 'k', 'm', '/v1', 'answered', 7, 0, 0, 0, 0, 0),
            (6, 'r', 'k', 'm', '/v1', 'queue_full', NULL, 1, 0, 0, 0, 0);",
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::open(&path).unwrap();
    let totals = store.usage(&UsageQuery::default()).unwrap().totals;
    let (prompt_tokens, completion_tokens) = (7, 0);
    let sums = UsageSums { requests: 2, prompt_tokens, completion_tokens, estimated: 1, errors: 1 };
    assert_eq!(totals, sums);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let content = "not a database, but long enough to be looked at as one".repeat(40);
    std::fs::write(&path, &content).unwrap();
    let error = refused(&path).to_string();
    assert!(error.contains("warren.db") && error.contains("move it away"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
}

/// A page in the middle is overwritten: the header is fine, the content is not.
#[test]
fn a_damaged_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let store = SqliteStore::open(&path).unwrap();
    let many: Vec<_> = (0..2_000).map(|number| seen(&format!("m{number}"), 1, 2)).collect();
    store.save_models(&many, 0).unwrap();
    drop(store);
    let mut content = std::fs::read(&path).unwrap();
    let pages = content.len() / 4096;
    assert!(pages > 10, "{pages} pages");
    content[4096 * (pages - 3)..4096 * (pages - 1)].fill(0xa5);
    std::fs::write(&path, &content).unwrap();
    let error = refused(&path);
    assert!(error.to_string().contains("damaged"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    SqliteStore::open(&path).unwrap();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 1_000).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::TooNew { .. }), "{error}");
    assert!(error.to_string().contains("newer version"), "{error}");
}

/// A database of the first release holds models only: they are still there afterwards.
#[test]
fn a_database_of_the_first_version_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE models (scope TEXT NOT NULL, model TEXT NOT NULL,
            first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
            PRIMARY KEY (scope, model)) STRICT, WITHOUT ROWID;
         INSERT INTO models VALUES ('server', 'a', 1, 2);
         PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.load_models().unwrap(), [seen("a", 1, 2)]);
    assert_eq!(store::KeyStore::load_keys(&store).unwrap(), []);
}

/// While another process writes, reading goes on, and writing fails with a word on why.
#[test]
fn a_locked_database_is_read_and_says_that_it_is_locked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let store = SqliteStore::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(store.load_models().unwrap(), []);
    let error = store.save_models(&[seen("a", 1, 2)], 0).unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
    other.execute_batch("COMMIT").unwrap();
    store.save_models(&[seen("a", 1, 2)], 0).unwrap();
}
