//! The database file: durability, migration, and refusal of files that must be left alone.

use std::{fs, path::Path};

use base::{Money, UsageCounts};
use rusqlite::Connection;
use store::{ModelStore, SqliteStore, StoreError, UsageQuery, UsageStore};

use super::{models::seen, old};

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

/// A copy of the file of a stopped server is complete.
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

/// Two jobs, one of which failed, in the rows of the first ledgers.
const OLD_ROWS: &str = "INSERT INTO usage (at, job, key, model, served_model, provider, api,
        outcome, status, prompt_tokens, estimated, queue_ms, first_byte_ms, total_ms, streaming,
        requeues)
     VALUES (86400005, 'r-000000000000000000000000000000ff', 'k', 'm', 'n', 'gpu', '/v1',
            'answered', 200, 7, 0, 1, 2, 3, 1, 2),
        (86400005, 'r', 'k', 'm', NULL, NULL, '/v1', 'queue_full', NULL, NULL, 1, 0, NULL, 0, 0, 0),
        (4, 'r-00000000000000000000000000000001', 'k', 'm', NULL, 'gpu', '/v1', 'client_gone', NULL,
            1, 0, 0, NULL, 0, 0, 0);";

/// A ledger of any version gives the same answers after the migration, and goes on.
#[test]
fn a_ledger_of_an_older_version_is_brought_up_to_date() {
    for version in [4, 5, 7] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("warren.db");
        old::database(&path, version).execute_batch(OLD_ROWS).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        let counts = |since_ms| {
            store.usage(&UsageQuery { since_ms, ..UsageQuery::default() }).unwrap().totals
        };
        let (prompt_tokens, completion_tokens) = (8, 0);
        let sums = UsageCounts {
            requests: 3,
            prompt_tokens,
            completion_tokens,
            total_tokens: 8,
            estimated: 1,
            errors: 1,
            cost: Money(0),
        };
        assert_eq!(counts(None), sums);
        assert_eq!(
            counts(Some(86_400_005)),
            UsageCounts { requests: 2, prompt_tokens: 7, total_tokens: 7, ..sums }
        );
        assert_eq!(counts(Some(86_400_006)), UsageCounts::default());
        assert_eq!(store.forget_usage(86_400_006, 1).unwrap(), 1);
        assert_eq!(store.forget_usage(86_400_006, 9).unwrap(), 2);
        assert_eq!(counts(None), UsageCounts::default());
    }
}

/// The view in the file shows a row for each job, with its names.
#[test]
fn the_rows_of_an_older_ledger_are_shown_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    old::database(&path, 7).execute_batch(OLD_ROWS).unwrap();
    let before = shown(&Connection::open(&path).unwrap());
    drop(SqliteStore::open(&path).unwrap());
    let after = shown(&Connection::open(&path).unwrap());
    assert!(before[0].contains("r-000000000000000000000000000000ff"), "{before:?}");
    assert_eq!(before, after);
}

/// All columns of the view of jobs.
fn shown(connection: &Connection) -> Vec<String> {
    let rows = "SELECT at, job, key, model, served_model, provider, api, outcome, status,
            prompt_tokens, completion_tokens, estimated, queue_ms, first_byte_ms, total_ms,
            streaming, requeues
        FROM usage WHERE job LIKE 'r-%0%' ORDER BY at DESC";
    let mut rows = connection.prepare(rows).unwrap();
    let columns = rows.column_count();
    let text = |row: &rusqlite::Row<'_>| {
        let value = |at| row.get::<_, rusqlite::types::Value>(at);
        Ok(format!("{:?}", (0..columns).map(value).collect::<Result<Vec<_>, _>>()?))
    };
    rows.query_map([], text).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A step that fails half-way leaves the database at its version, with all its rows.
#[test]
fn a_ledger_that_cannot_be_brought_up_to_date_is_left_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let old = old::database(&path, 7);
    old.execute_batch(OLD_ROWS).unwrap();
    old.execute_batch("CREATE VIEW usage_rows AS SELECT 'in the way'").unwrap();
    drop(old);
    let error = refused(&path);
    assert!(error.to_string().contains("left as it was"), "{error}");
    let old = Connection::open(&path).unwrap();
    assert_eq!(shown(&old).len(), 2);
    let version = old.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    assert_eq!(version.unwrap(), 7);
    old.execute_batch("DROP VIEW usage_rows").unwrap();
    assert!(SqliteStore::open(&path).is_ok());
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
    let old = old::database(&path, 1);
    old.execute_batch("INSERT INTO models VALUES ('server', 'a', 1, 2)").unwrap();
    drop(old);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.load_models().unwrap(), [seen("a", 1, 2)]);
    assert_eq!(store::KeyStore::load_keys(&store).unwrap(), []);
}

/// While another process writes, reads work, and writes fail with the reason.
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

fn keeps(store: &SqliteStore, name: &str) -> Result<(), StoreError> {
    store.save_models(&[seen(name, 1, 2)], 0)
}

/// SQLite itself would go on writing to the file that nobody finds any more.
#[test]
fn a_file_that_is_moved_replaced_or_deleted_keeps_nothing_until_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let (path, aside) = (directory.path().join("warren.db"), directory.path().join("aside"));
    let store = SqliteStore::open(&path).unwrap();
    keeps(&store, "a").unwrap();
    assert_eq!(store.look(true), None);
    fs::rename(&path, &aside).unwrap();
    let error = keeps(&store, "b").unwrap_err();
    assert!(matches!(error, StoreError::Misplaced { .. }), "{error}");
    assert!(store.problem().unwrap().contains("is gone"));
    fs::write(&path, "another").unwrap();
    assert!(store.look(false).unwrap().contains("is another file now"));
    assert!(keeps(&store, "b").is_err());
    fs::rename(&aside, &path).unwrap();
    assert!(keeps(&store, "b").is_err(), "it was not looked at yet");
    assert_eq!(store.look(false), None);
    keeps(&store, "c").unwrap();
    drop(store);
    let models = SqliteStore::open(&path).unwrap().load_models().unwrap();
    assert_eq!(models.iter().map(|seen| seen.model.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

#[test]
fn a_file_whose_directory_is_moved_keeps_nothing_until_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let (data, aside) = (directory.path().join("data"), directory.path().join("aside"));
    fs::create_dir(&data).unwrap();
    let store = SqliteStore::open(&data.join("warren.db")).unwrap();
    fs::rename(&data, &aside).unwrap();
    assert!(keeps(&store, "a").is_err());
    fs::rename(&aside, &data).unwrap();
    assert_eq!(store.look(false), None);
    keeps(&store, "a").unwrap();
}

#[test]
fn a_write_ahead_log_that_is_deleted_is_made_again_without_a_loss() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let log = directory.path().join("warren.db-wal");
    let store = SqliteStore::open(&path).unwrap();
    keeps(&store, "a").unwrap();
    fs::remove_file(&log).unwrap();
    assert!(keeps(&store, "b").unwrap_err().to_string().contains("warren.db-wal is gone"));
    assert_eq!(store.look(false), None);
    keeps(&store, "c").unwrap();
    assert!(log.exists());
    // As after a kill: what is in the two files is all there is.
    let copy = tempfile::tempdir().unwrap();
    for file in [&path, &log] {
        fs::copy(file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    let models = SqliteStore::open(&copy.path().join("warren.db")).unwrap().load_models().unwrap();
    assert_eq!(models.len(), 2, "{models:?}");
}

#[test]
fn a_file_that_is_damaged_while_it_is_open_keeps_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let store = SqliteStore::open(&path).unwrap();
    let many: Vec<_> = (0..2_000).map(|number| seen(&format!("m{number}"), 1, 2)).collect();
    store.save_models(&many, 0).unwrap();
    let files = [path, directory.path().join("warren.db-wal")];
    for file in &files {
        let mut content = fs::read(file).unwrap();
        let from = content.len().min(8192);
        content[from..].fill(0xa5);
        fs::write(file, content).unwrap();
    }
    let found = store.look(true).unwrap();
    assert!(found.contains("damaged") && found.contains("backup"), "{found}");
    assert!(matches!(keeps(&store, "b"), Err(StoreError::Damaged { .. })));
    assert!(store.look(false).is_some(), "it stays until it is whole again");
}

#[test]
fn a_file_that_is_cut_short_keeps_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    drop(SqliteStore::open(&path).unwrap());
    let store = SqliteStore::open(&path).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    assert!(keeps(&store, "b").unwrap_err().to_string().contains("was cut"));
    assert!(store.look(false).unwrap().contains("damaged"));
    assert!(keeps(&store, "b").is_err());
}
