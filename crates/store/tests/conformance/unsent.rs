//! Rows that wait on a machine's disk.

use store::{Action, SqliteStore, StoreError, UsageEntry};

use super::usage::entry;

fn opened(directory: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(&directory.path().join("shared.db")).unwrap()
}

#[test]
fn rows_wait_as_they_are_in_their_order_and_by_their_source_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let full = UsageEntry {
        cost: Some(base::Money(9)),
        resumes: Some(r#"[{"from":"a","to":null,"characters":7}]"#.into()),
        requeues: 2,
        estimated: true,
        ..entry(5, "k\0'", "m", (3, 4))
    };
    let bare = UsageEntry {
        provider: None,
        served_model: None,
        status: None,
        prompt_tokens: None,
        completion_tokens: None,
        first_byte_ms: None,
        outcome: "worker_failed".into(),
        ..entry(u64::from(u32::MAX), "a", "m", (0, 0))
    };
    opened(&directory).queue_usage("run-1", &[full.clone(), bare.clone()], 9).unwrap();
    let store = opened(&directory);
    store.queue_usage("run-2", std::slice::from_ref(&bare), 9).unwrap();
    let first = store.waiting_usage(9).unwrap();
    assert_eq!((first.source.as_str(), first.last()), ("run-1", Some(2)));
    assert_eq!(first.rows, [(1, full.clone()), (2, bare.clone())]);
    assert_eq!(store.waiting_usage(1).unwrap().rows, [(1, full)]);
    assert_eq!(store.sent_usage(2).unwrap(), 1);
    let second = store.waiting_usage(9).unwrap();
    assert_eq!((second.source.as_str(), second.rows), ("run-2", vec![(3, bare.clone())]));
    assert_eq!(store.sent_usage(3).unwrap(), 0);
    store.queue_usage("run-2", &[bare], 9).unwrap();
    assert_eq!(store.waiting_usage(9).unwrap().last(), Some(4), "no number is given twice");
}

#[test]
fn a_row_of_a_newer_version_with_an_unknown_endpoint_holds_no_other_up() {
    let directory = tempfile::tempdir().unwrap();
    let store = opened(&directory);
    let rows: Vec<_> = (0..3).map(|at| entry(at, "a", "m", (1, 1))).collect();
    store.queue_usage("run", &rows, 9).unwrap();
    let file = rusqlite::Connection::open(directory.path().join("shared.db")).unwrap();
    file.execute("UPDATE unsent_usage SET api = '/v9/new' WHERE number = 2", []).unwrap();
    let waiting: Vec<UsageEntry> =
        store.waiting_usage(9).unwrap().rows.into_iter().map(|(_, row)| row).collect();
    let counted = UsageEntry { endpoint: base::Endpoint::ChatCompletions, ..rows[1].clone() };
    assert_eq!(waiting, [rows[0].clone(), counted, rows[2].clone()]);
}

#[test]
fn no_more_rows_wait_than_the_bound() {
    let directory = tempfile::tempdir().unwrap();
    let store = opened(&directory);
    let rows: Vec<_> = (0..3).map(|at| entry(at, "a", "m", (1, 1))).collect();
    store.queue_usage("run", &rows, 5).unwrap();
    let full = store.queue_usage("run", &rows, 5).unwrap_err();
    assert!(matches!(full, StoreError::Full { most: 5 }), "{full}");
    store.queue_usage("run", &rows[..2], 5).unwrap();
    assert_eq!(store.waiting_usage(9).unwrap().rows.len(), 5);
    let action = Action {
        at: 1,
        who: "w".to_owned(),
        what: "key.create".to_owned(),
        target: "t".to_owned(),
        outcome: "done".to_owned(),
    };
    store.queue_actions("run", std::slice::from_ref(&action), 1).unwrap();
    store.queue_actions("run", std::slice::from_ref(&action), 1).unwrap_err();
    let waiting = store.waiting_actions(9).unwrap();
    assert_eq!((waiting.rows.as_slice(), waiting.last()), ([(1, action)].as_slice(), Some(1)));
    assert_eq!(store.sent_actions(1).unwrap(), 0);
}
