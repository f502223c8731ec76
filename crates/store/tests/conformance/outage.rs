//! A server whose shared database goes away and comes back.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use base::Secret;
use store::{
    Action, AgeStore, AuditStore, KeyRecord, KeyStore, PageSessionStore, SharedStore, UsageEntry,
    UsageQuery, UsageStore, WaitingRows, shared::Stale,
};

use testkit::postgres::PostgresServer;

use super::{
    keys::key,
    page_sessions::session,
    shared::{database, store as shared_store},
    usage::entry,
};

fn open(url: &Secret, directory: &Path) -> SharedStore {
    SharedStore::open(url, &directory.join("shared.db")).unwrap()
}

/// Tries as a server does, until there is an answer.
fn until_it_is_back<T>(store: &SharedStore, ask: impl Fn() -> Result<T, store::StoreError>) -> T {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(error.is_unavailable() && Instant::now() < until, "{error}");
                store.wait_for_change(Duration::from_millis(50));
            }
        }
    }
}

fn send_all(store: &SharedStore) {
    while until_it_is_back(store, || store.send()).left > 0 {}
}

fn requests(store: &SharedStore) -> u64 {
    store.usage(&UsageQuery::default()).unwrap().totals.requests
}

#[test]
fn without_its_database_a_server_starts_from_its_copy_and_only_if_it_has_one() {
    let mut server = PostgresServer::start();
    let (url, directory, other) =
        (database(&server), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(&url, directory.path());
    store.save_key(&key("k-1", 1, 1)).unwrap();
    store.save_page_session(&session("ps-1", 1, 1)).unwrap();
    assert_eq!(store.load_keys().unwrap().len(), 1);
    assert_eq!(store.load_page_sessions().unwrap().len(), 1);
    store.save_reached(77).unwrap();
    drop(store);
    server.kill();
    let stranger = SharedStore::open(&url, &other.path().join("shared.db")).err().unwrap();
    assert!(stranger.is_unavailable(), "{stranger}");
    let store = open(&url, directory.path());
    assert_eq!(store.load_keys().unwrap(), [key("k-1", 1, 1)]);
    assert_eq!(store.load_page_sessions().unwrap(), [session("ps-1", 1, 1)]);
    assert_eq!(store.load_reached().unwrap(), Some(77));
    assert!(store.save_key(&key("k-2", 2, 2)).unwrap_err().is_unavailable());
    let problem = store.problem().unwrap();
    assert!(problem.contains("known keys work") && !problem.contains("warren@"), "{problem}");
    server.run();
    let all = Stale { keys: true, invitations: true, page_sessions: true, rooms: true };
    assert_eq!(until_it_is_back(&store, || store.stale()), all, "all is read again");
    assert!(store.changed_keys().unwrap().whole);
    assert!(!store.stale().unwrap().keys && store.problem().is_none());
}

#[test]
fn what_was_revoked_or_ended_without_the_database_stays_so() {
    let mut server = PostgresServer::start();
    let (url, directory) = (database(&server), tempfile::tempdir().unwrap());
    let store = open(&url, directory.path());
    store.save_key(&key("k-1", 1, 1)).unwrap();
    store.save_page_session(&session("ps-1", 1, 1)).unwrap();
    store.load_keys().unwrap();
    store.load_page_sessions().unwrap();
    server.kill();
    let revoked = KeyRecord { revoked: Some(9), ..key("k-1", 1, 1) };
    assert!(store.save_key(&revoked).unwrap_err().is_unavailable());
    assert!(store.forget_page_session("ps-1").unwrap_err().is_unavailable());
    assert_eq!(store.load_page_sessions().unwrap(), []);
    server.run();
    let sessions = until_it_is_back(&store, || store.changed_page_sessions());
    assert!(sessions.whole && sessions.records.is_empty());
    drop(store);
    let restarted = open(&url, directory.path());
    assert_eq!(restarted.load_keys().unwrap(), std::slice::from_ref(&revoked));
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(open(&url, elsewhere.path()).load_keys().unwrap(), [revoked], "written");
}

#[test]
fn revocations_outlive_a_server_that_ends_before_it_has_written_them() {
    let mut server = PostgresServer::start();
    let (url, directory) = (database(&server), tempfile::tempdir().unwrap());
    let store = open(&url, directory.path());
    let revoked = [key("k-1", 1, 1), key("k-2", 2, 2)].map(|record| {
        store.save_key(&record).unwrap();
        KeyRecord { revoked: Some(9), ..record }
    });
    store.load_keys().unwrap();
    server.kill();
    for record in &revoked {
        assert!(store.save_key(record).unwrap_err().is_unavailable());
    }
    server.run();
    let read = until_it_is_back(&store, || store.changed_keys());
    assert!(read.whole && read.records.iter().all(|record| record.revoked.is_none()));
    drop(store);
    let restarted = open(&url, directory.path());
    assert_eq!(restarted.load_keys().unwrap(), revoked);
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(open(&url, elsewhere.path()).load_keys().unwrap(), revoked, "written");
}

#[test]
fn a_page_session_that_was_ended_without_the_database_stays_so_after_a_restart() {
    let mut server = PostgresServer::start();
    let (url, directory) = (database(&server), tempfile::tempdir().unwrap());
    let store = open(&url, directory.path());
    for (id, at) in [("ps-1", 1), ("ps-2", 2)] {
        store.save_page_session(&session(id, at, 1)).unwrap();
    }
    store.load_keys().unwrap();
    store.load_page_sessions().unwrap();
    server.kill();
    assert!(store.forget_page_session("ps-1").unwrap_err().is_unavailable());
    drop(store);
    let away = open(&url, directory.path());
    assert_eq!(away.load_page_sessions().unwrap(), [session("ps-2", 2, 1)]);
    drop(away);
    server.run();
    let back = open(&url, directory.path());
    assert_eq!(back.load_page_sessions().unwrap(), [session("ps-2", 2, 1)]);
    let elsewhere = tempfile::tempdir().unwrap();
    let other = open(&url, elsewhere.path());
    assert_eq!(other.load_page_sessions().unwrap(), [session("ps-2", 2, 1)]);
}

#[test]
fn rows_wait_on_the_disk_and_each_counts_once() {
    let mut server = PostgresServer::start();
    let (url, directory) = (database(&server), tempfile::tempdir().unwrap());
    let store = open(&url, directory.path());
    let rows: Vec<_> = (0..1500).map(|at| entry(at, "a", "m", (1, 1))).collect();
    server.freeze();
    store.add_usage(&rows).unwrap();
    assert!(store.send().unwrap_err().is_unavailable());
    server.thaw();
    server.kill();
    store.add_usage(&rows[..3]).unwrap();
    assert!(store.send().unwrap_err().is_unavailable());
    assert_eq!(store.waiting(), 1503);
    drop(store);
    let store = open_when_it_is_back(&mut server, &url, directory.path());
    assert_eq!(store.waiting(), 1503, "also after a restart");
    let action = Action {
        at: 1,
        who: "w".to_owned(),
        what: "key.create".to_owned(),
        target: String::new(),
        outcome: "done".to_owned(),
    };
    store.add_action(&action).unwrap();
    send_all(&store);
    assert_eq!((requests(&store), store.waiting()), (1503, 0));
    assert_eq!(store.actions(9).unwrap(), [action]);
}

fn open_when_it_is_back(
    server: &mut PostgresServer,
    url: &Secret,
    directory: &Path,
) -> SharedStore {
    server.run();
    open(url, directory)
}

/// As when the answer to a commit is lost.
#[test]
fn rows_that_are_sent_again_are_not_taken_again() {
    let store = shared_store();
    let numbered = |numbers: std::ops::Range<i64>| WaitingRows {
        source: "run".to_owned(),
        rows: numbers.map(|number| (number, entry(1, "a", "m", (1, 0)))).collect(),
    };
    for numbers in [1..4, 1..4, 3..6, 1..3] {
        store.take_usage(&numbered(numbers)).unwrap();
    }
    store.take_usage(&WaitingRows { source: "other run".to_owned(), ..numbered(1..2) }).unwrap();
    assert_eq!(store.usage(&UsageQuery::default()).unwrap().totals.requests, 5 + 1);
}

#[test]
fn a_row_that_the_database_refuses_is_left_out_and_holds_no_other_up() {
    let (url, directory) = (database(PostgresServer::shared()), tempfile::tempdir().unwrap());
    let store = open(&url, directory.path());
    // Longer than an index takes, and not to be compressed.
    let mut state = 88_172_645_463_325_252_u64;
    let name: String = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:x}")
    })
    .take(900)
    .collect();
    let mut rows: Vec<UsageEntry> = (0..9).map(|at| entry(at, "a", "m", (1, 1))).collect();
    rows[4] = entry(4, &name, "m", (1, 1));
    store.add_usage(&rows).unwrap();
    let sent = store.send().unwrap();
    assert_eq!((sent.taken, sent.refused, sent.left), (8, 1, 0));
    assert_eq!(requests(&store), 8);
}
