//! Every store does the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use store::{ModelStore, SeenModel, SqliteStore, StoreError, VolatileStore};

fn seen(model: &str, first: u64, last: u64) -> SeenModel {
    SeenModel { scope: "server".into(), model: model.into(), first, last }
}

fn keeps_what_it_is_given(store: &dyn ModelStore) {
    store.save_models(&[seen("a", 1, 1), seen("b", 1, 5)], 0).unwrap();
    store.save_models(&[seen("a", 1, 9)], 0).unwrap();
    let mut all = store.load_models().unwrap();
    all.sort_by(|one, other| one.model.cmp(&other.model));
    assert_eq!(all, [seen("a", 1, 9), seen("b", 1, 5)]);
}

fn forgets_what_is_old(store: &dyn ModelStore) {
    store.save_models(&[seen("a", 1, 1), seen("b", 1, 5)], 5).unwrap();
    assert_eq!(store.load_models().unwrap(), [seen("b", 1, 5)]);
}

#[test]
fn every_store_conforms() {
    for check in [keeps_what_it_is_given, forgets_what_is_old] {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = SqliteStore::open(&directory.path().join("warren.db")).unwrap();
        let stores: [Arc<dyn ModelStore>; 2] =
            [Arc::new(VolatileStore::default()), Arc::new(sqlite)];
        for store in stores {
            check(&*store);
        }
    }
}

#[test]
fn a_database_outlives_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    SqliteStore::open(&path).unwrap().save_models(&[seen("a", 1, 2)], 0).unwrap();
    assert_eq!(SqliteStore::open(&path).unwrap().load_models().unwrap(), [seen("a", 1, 2)]);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let content = "not a database, but long enough to be looked at as one".repeat(40);
    std::fs::write(&path, &content).unwrap();
    let Err(error) = SqliteStore::open(&path) else { panic!("opened") };
    assert!(matches!(error, StoreError::Database { .. } | StoreError::Migration { .. }));
    assert!(error.to_string().contains("warren.db"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
}
