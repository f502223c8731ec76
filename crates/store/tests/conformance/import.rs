//! Records that a server takes along from its own file into the database that several servers share.

use store::{
    Action, AuditStore, InvitationRecord, InvitationStore, KeyDigest, KeyRecord, KeyStore,
    PageSessionStore, SqliteStore, StoreError, UsageQuery, UsageStore,
    import::{ImportCounts, Taken},
};

use super::{keys::key, page_sessions::session, shared::store as shared_store, usage::entry};

fn invitation(id: &str, used: Option<u64>, expires: u64) -> InvitationRecord {
    InvitationRecord {
        id: id.to_owned(),
        digest: KeyDigest([3; 32]),
        name: None,
        created: 1,
        expires,
        used,
        key: None,
        revoked: None,
    }
}

/// A file with two keys, an open invitation and two that are not, a page session and one that is over, 2500 rows.
fn own(directory: &tempfile::TempDir) -> SqliteStore {
    let own = SqliteStore::open(&directory.path().join("warren.db")).unwrap();
    own.save_key(&key("k-1", 1, 1)).unwrap();
    own.save_key(&KeyRecord { revoked: Some(5), ..key("k-2", 2, 2) }).unwrap();
    for (id, used, expires) in [("open", None, 99), ("used", Some(5), 99), ("over", None, 7)] {
        own.save_invitation(&invitation(id, used, expires)).unwrap();
    }
    own.save_page_session(&session("ps-1", 1, 1)).unwrap();
    let over = store::PageSessionRecord { expires: 7, ..session("ps-2", 2, 2) };
    own.save_page_session(&over).unwrap();
    let rows: Vec<_> = (0..2_500).map(|at| entry(at, "k-1", "m", (2, 1))).collect();
    own.add_usage(&rows).unwrap();
    own.add_action(&action("key.create")).unwrap();
    own
}

fn action(what: &str) -> Action {
    let text = |text: &str| text.to_owned();
    Action { at: 1, who: text("w"), what: text(what), target: text(""), outcome: text("done") }
}

fn taken(new: [u64; 5], known: [u64; 5]) -> ImportCounts {
    let taken = |at: usize| Taken { new: new[at], known: known[at] };
    ImportCounts {
        keys: taken(0),
        invitations: taken(1),
        page_sessions: taken(2),
        usage: taken(3),
        audit: taken(4),
    }
}

#[test]
fn twice_is_the_same_as_once_and_a_dry_run_is_nothing() {
    let (directory, shared) = (tempfile::tempdir().unwrap(), shared_store());
    let own = own(&directory);
    let all = [2, 1, 1, 2_500, 1];
    assert_eq!(shared.import(&own, 50, true).unwrap(), taken(all, [0; 5]));
    assert!(shared.load_keys().unwrap().is_empty() && own.import_source().unwrap().is_none());
    assert_eq!(shared.import(&own, 50, false).unwrap(), taken(all, [0; 5]));
    assert_eq!(shared.import(&own, 50, false).unwrap(), taken([0; 5], all));
    assert_eq!(shared.import(&own, 50, true).unwrap(), taken([0; 5], all));
    assert_eq!(shared.load_keys().unwrap(), own.load_keys().unwrap());
    assert_eq!(shared.load_invitations().unwrap(), [invitation("open", None, 99)]);
    assert_eq!(shared.load_page_sessions().unwrap(), [session("ps-1", 1, 1)]);
    let (query, sums) = (UsageQuery::default(), |answer: store::UsageAnswer| answer.totals);
    assert_eq!(sums(shared.usage(&query).unwrap()), sums(own.usage(&query).unwrap()));
    assert_eq!(shared.actions(9).unwrap(), [action("key.create")]);
}

#[test]
fn what_has_come_since_is_taken_along_and_what_was_changed_there_stays() {
    let (directory, shared) = (tempfile::tempdir().unwrap(), shared_store());
    let own = own(&directory);
    shared.import(&own, 50, false).unwrap();
    shared.save_key(&KeyRecord { revoked: Some(9), ..key("k-1", 1, 1) }).unwrap();
    own.add_usage(&[entry(9_000, "k-1", "m", (1, 1))]).unwrap();
    own.add_action(&action("key.rotate")).unwrap();
    own.save_key(&key("k-3", 3, 3)).unwrap();
    let more = shared.import(&own, 50, false).unwrap();
    assert_eq!(more, taken([1, 0, 0, 1, 1], [2, 1, 1, 2_500, 1]));
    assert_eq!(shared.load_keys().unwrap()[0].revoked, Some(9), "revoked stays revoked");
    assert_eq!(shared.usage(&UsageQuery::default()).unwrap().totals.requests, 2_501);
}

#[test]
fn a_text_that_another_key_has_is_refused_and_nothing_is_changed() {
    let (directory, shared) = (tempfile::tempdir().unwrap(), shared_store());
    let own = own(&directory);
    shared.save_key(&key("k-other", 2, 9)).unwrap();
    for is_dry in [true, false] {
        let error = shared.import(&own, 50, is_dry).unwrap_err();
        assert!(matches!(error, StoreError::Clash { .. }), "{error}");
        let words = error.to_string();
        assert!(words.contains("k-2") && words.contains("k-other"), "{words}");
    }
    assert_eq!(shared.load_keys().unwrap().len(), 1);
    assert_eq!(shared.usage(&UsageQuery::default()).unwrap().totals.requests, 0);
}
