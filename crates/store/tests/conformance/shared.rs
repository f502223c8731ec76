//! Features that only a store has that several servers share.

use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use base::Secret;
use store::{
    Action, AuditStore, InvitationRecord, InvitationStore, KeyDigest, KeyRecord, KeyStore,
    PostgresStore, RoomRecord, RoomStore, StoreError, UsageQuery, UsageStore, postgres::Revisions,
};

use testkit::postgres::PostgresServer;

use super::{
    keys::key,
    rooms::{home, participant, room},
    usage::entry,
};

/// A store in a new database.
pub(crate) fn store() -> PostgresStore {
    open(&database(PostgresServer::shared()))
}

pub(crate) fn database(server: &PostgresServer) -> Secret {
    Secret::from(server.database())
}

pub(crate) fn open(url: &Secret) -> PostgresStore {
    PostgresStore::new(url).unwrap()
}

#[test]
fn the_tables_are_made_once_however_many_servers_start() {
    let (server, begin) = (PostgresServer::shared(), Barrier::new(8));
    let url = database(server);
    thread::scope(|scope| {
        for number in 0..8 {
            let (url, begin) = (&url, &begin);
            scope.spawn(move || {
                begin.wait();
                open(url).save_key(&key(&format!("k-{number}"), number, 1)).unwrap();
            });
        }
    });
    assert_eq!(open(&url).load_keys().unwrap().len(), 8);
    assert_eq!(server.sql(url.expose(), "SELECT count(*) FROM warren.tables"), "1");
}

#[test]
fn tables_of_a_newer_version_are_refused_in_clear_words() {
    let server = PostgresServer::shared();
    let url = database(server);
    open(&url).load_keys().unwrap();
    server.sql(url.expose(), "UPDATE warren.tables SET version = 99");
    let error = open(&url).load_keys().unwrap_err();
    assert!(matches!(error, StoreError::NewerTables { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("newer version of Warren"), "{error}");
}

#[test]
fn a_user_without_the_right_to_make_a_schema_has_one_made_for_him() {
    let server = PostgresServer::shared();
    let url = database(server);
    server.sql(url.expose(), "CREATE ROLE plain LOGIN; CREATE SCHEMA warren AUTHORIZATION plain");
    let plain = Secret::from(url.expose().replace("warren@", "plain@"));
    open(&plain).save_key(&key("k-1", 1, 1)).unwrap();
    assert_eq!(open(&url).load_keys().unwrap().len(), 1);
}

#[test]
fn what_one_server_changes_another_hears_of_and_reads_alone() {
    let url = database(PostgresServer::shared());
    let (one, other) = (open(&url), open(&url));
    one.save_key(&key("k-1", 1, 1)).unwrap();
    let (all, first) = other.changed_keys(None).unwrap();
    assert!(all.whole && all.records.len() == 1);
    other.wait_for_change(Duration::from_millis(100));
    let changed = KeyRecord { revoked: Some(9), ..key("k-2", 2, 2) };
    thread::scope(|scope| {
        scope.spawn(|| one.save_key(&changed).unwrap());
        let began = Instant::now();
        while other.revisions().unwrap().keys == first {
            other.wait_for_change(Duration::from_secs(30));
        }
        assert!(began.elapsed() < Duration::from_secs(20), "told, not found by chance");
    });
    let (news, second) = other.changed_keys(Some(first)).unwrap();
    assert_eq!((news.whole, news.records), (false, vec![changed]));
    one.touch_keys(&[("k-1".into(), 77)]).unwrap();
    assert_eq!(other.revisions().unwrap().keys, second, "a use is no change");
    one.forget_key(&"k-1".into()).unwrap();
    let (rest, third) = other.changed_keys(Some(second)).unwrap();
    assert!(rest.whole && rest.records.len() == 1, "only all that is left shows what is gone");
    let restored = other.changed_keys(Some(third + 5)).unwrap().0;
    assert!(restored.whole, "a number from after a backup");
    let after = Revisions { keys: third, ..Revisions::default() };
    assert_eq!(one.revisions().unwrap(), after);
}

#[test]
fn what_becomes_of_a_room_is_heard_of_and_its_use_is_not() {
    let url = database(PostgresServer::shared());
    let (one, other) = (open(&url), open(&url));
    one.save_room(&room("a", 1)).unwrap();
    let (all, first) = other.changed_rooms(None).unwrap();
    assert!(all.whole && all.records == [room("a", 1)]);
    one.touch_rooms(&[("a".into(), 99)]).unwrap();
    one.save_participant(&participant("a", "p", 1)).unwrap();
    assert_eq!(other.revisions().unwrap().rooms, first);
    let claimed = one.claim_room(&"a".into(), 0, &home("kitchen")).unwrap().unwrap();
    let (news, second) = other.changed_rooms(Some(first)).unwrap();
    assert_eq!((news.whole, news.records), (false, vec![claimed.clone()]));
    assert!(one.change_room(&RoomRecord { used: 3, name: "new".to_owned(), ..claimed }).unwrap());
    let (news, third) = other.changed_rooms(Some(second)).unwrap();
    assert_eq!((&*news.records[0].name, news.records[0].used), ("new", 99), "the latest use holds");
    one.forget_room(&"a".into()).unwrap();
    let (rest, _) = other.changed_rooms(Some(third)).unwrap();
    assert!(rest.whole && rest.records.is_empty());
}

#[test]
fn a_server_that_has_not_heard_of_a_revocation_does_not_take_it_back() {
    let store = store();
    store.save_key(&KeyRecord { revoked: Some(7), last_used: Some(8), ..key("k", 1, 1) }).unwrap();
    store.save_key(&KeyRecord { last_used: Some(3), ..key("k", 2, 1) }).unwrap();
    let expected = KeyRecord { revoked: Some(7), last_used: Some(8), ..key("k", 2, 1) };
    assert_eq!(store.load_keys().unwrap(), [expected]);
}

#[test]
fn of_many_machines_with_one_invitation_one_gets_in() {
    let url = database(PostgresServer::shared());
    let open_one = InvitationRecord {
        id: "i".to_owned(),
        digest: KeyDigest([1; 32]),
        name: None,
        created: 1,
        expires: 9,
        used: None,
        key: None,
        revoked: None,
    };
    open(&url).save_invitation(&open_one).unwrap();
    let begin = Barrier::new(6);
    let used = |number: usize| {
        let store = open(&url);
        store.load_invitations().unwrap();
        begin.wait();
        let key = Some(format!("k-{number}").into());
        store.use_invitation(&InvitationRecord { used: Some(2), key, ..open_one.clone() }).unwrap()
    };
    let let_in: Vec<bool> = thread::scope(|scope| {
        let used = &used;
        let tries: Vec<_> = (0..6).map(|number| scope.spawn(move || used(number))).collect();
        tries.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(let_in.iter().filter(|let_in| **let_in).count(), 1);
}

#[test]
fn servers_that_write_the_same_days_lose_nothing_and_never_wait_for_each_other_in_a_circle() {
    let url = database(PostgresServer::shared());
    open(&url).load_keys().unwrap();
    let write = |from: u64| {
        let store = open(&url);
        for batch in 0..10_u64 {
            let at = |number: u64| (from + number * 7919 + batch) % 9;
            let rows: Vec<_> =
                (0..40_u64).map(|it| entry(1, &format!("k-{}", at(it)), "m", (1, 1))).collect();
            store.add_usage(&rows).unwrap();
        }
    };
    thread::scope(|scope| {
        let write = &write;
        (0..6).for_each(|from| drop(scope.spawn(move || write(from))));
    });
    assert_eq!(open(&url).usage(&UsageQuery::default()).unwrap().totals.requests, 6 * 10 * 40);
}

#[test]
fn the_oldest_actions_are_forgotten_over_the_bound_here_too() {
    let server = PostgresServer::shared();
    let url = database(server);
    let (store, action) = (open(&url), |at: u64| Action {
        at,
        who: "w".to_owned(),
        what: "a\0b".to_owned(),
        target: String::new(),
        outcome: String::new(),
    });
    store.add_action(&action(1)).unwrap();
    server.sql(url.expose(), "ALTER TABLE warren.audit ALTER COLUMN id RESTART WITH 100001");
    store.add_action(&action(2)).unwrap();
    let expected = Action { what: "a\u{fffd}b".to_owned(), ..action(2) };
    assert_eq!(store.actions(9).unwrap(), [expected], "and no text is refused for a NUL");
}

#[test]
fn a_database_that_hangs_or_dies_is_told_apart_from_a_refusal_and_is_connected_to_again() {
    let mut server = PostgresServer::start();
    let store = open(&database(&server));
    store.save_key(&key("k-1", 1, 1)).unwrap();
    assert!(store.problem().is_none());
    let refused = store.save_key(&key("k-2", 1, 1)).unwrap_err();
    assert!(!refused.is_unavailable() && store.problem().is_none(), "{refused}");

    server.freeze();
    let began = Instant::now();
    let late = store.load_keys().unwrap_err();
    assert!(late.is_unavailable() && late.to_string().contains("answered within"), "{late}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(store.problem().unwrap().contains("cannot be used"));
    let not_let_in = store.load_keys().unwrap_err().to_string();
    assert!(not_let_in.contains("answered within 4 s"), "{not_let_in}");
    // On a busy machine the rest, of 200 ms at first, can be over before the next call.
    let fails_at_once = |_| {
        let began = Instant::now();
        assert_eq!(store.load_keys().unwrap_err().to_string(), not_let_in);
        began.elapsed() < Duration::from_secs(2)
    };
    assert!((0..5).any(fails_at_once), "while it rests nobody waits for it");
    server.thaw();
    answers_again(&store);

    server.kill();
    assert!(store.load_keys().unwrap_err().is_unavailable());
    server.run();
    answers_again(&store);
    assert!(store.problem().is_none());
}

/// Tries as a server does, until there is an answer.
fn answers_again(store: &PostgresStore) {
    let until = Instant::now() + Duration::from_secs(30);
    while let Err(error) = store.load_keys() {
        assert!(error.is_unavailable() && Instant::now() < until, "{error}");
        store.wait_for_change(Duration::from_millis(50));
    }
    assert_eq!(store.load_keys().unwrap().len(), 1);
}

#[test]
fn more_callers_than_the_bound_are_turned_away_while_it_hangs() {
    let server = PostgresServer::start();
    let store = open(&database(&server));
    store.load_keys().unwrap();
    server.freeze();
    let errors: Vec<String> = thread::scope(|scope| {
        let call = |_| scope.spawn(|| store.load_keys().unwrap_err().to_string());
        let calls: Vec<_> = (0..300).map(call).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    server.thaw();
    let turned_away =
        errors.iter().filter(|words| words.contains("256 others wait for it")).count();
    assert_eq!((turned_away, errors.len()), (44, 300));
}
