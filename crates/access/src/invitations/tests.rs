//! Joining, revoking and the bounds.

use store::{Changes, KeyStore, VolatileStore};

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

struct Server {
    store: Arc<VolatileStore>,
    keys: Keys,
    invitations: Invitations,
    now: Moment,
}

fn server() -> Server {
    on(&Arc::default(), Moment::now())
}

fn on(store: &Arc<VolatileStore>, now: Moment) -> Server {
    let store = Arc::clone(store);
    let keys = Keys::open(Arc::<VolatileStore>::clone(&store), now).unwrap();
    let invitations = Invitations::open(Arc::<VolatileStore>::clone(&store), keys.clone()).unwrap();
    Server { store, keys, invitations, now }
}

fn new(number: usize) -> NewInvitation {
    let secret = Secret::from(format!("secret {number}"));
    NewInvitation { id: format!("i-{number}"), secret, name: None, lasts: HOUR, stored: true }
}

#[test]
fn an_invitation_is_good_for_one_machine_also_after_a_restart() {
    let first = server();
    first.invitations.create(new(1), first.now).unwrap();
    first
        .invitations
        .create(NewInvitation { name: Some("gpu".to_owned()), ..new(2) }, first.now)
        .unwrap();
    let restarted = on(&first.store, first.now);
    let (key, text) = restarted.invitations.join("secret 1", " laptop ", restarted.now).unwrap();
    assert_eq!((key.name.as_str(), &key.scopes[..]), ("laptop", &[KeyScope::Worker][..]));
    assert!(
        restarted.keys.present(text.expose(), KeyScope::Worker, restarted.now).unwrap().is_some()
    );
    let (named, _) = restarted.invitations.join("secret 2", "laptop", restarted.now).unwrap();
    assert_eq!(named.name, "gpu");
    for server in [on(&first.store, first.now), restarted] {
        let used = server.invitations.join("secret 1", "other", server.now).unwrap_err();
        assert!(matches!(used, NotJoined::Used), "{used}");
    }
    assert_eq!(first.store.load_keys().unwrap().len(), 2);
    let stored = format!("{:?}", first.store.load_invitations().unwrap());
    assert!(!stored.contains("secret 1"), "{stored}");
}

#[test]
fn what_is_no_open_invitation_is_refused_in_words_of_its_own() {
    let Server { invitations, now, .. } = server();
    let join = |number: usize, now| {
        invitations.join(&format!("secret {number}"), "m", now).map(drop).unwrap_err().to_string()
    };
    (1..=2).for_each(|number| drop(invitations.create(new(number), now).unwrap()));
    invitations.revoke("i-1", now).unwrap();
    assert!(join(1, now).contains("was revoked"));
    assert!(join(2, now.after(HOUR)).contains("has expired"));
    assert!(join(3, now).contains("knows no such"));
    let unnamed = invitations.join("secret 2", " \n", now).unwrap_err().to_string();
    assert!(unnamed.contains("needs a name"), "{unnamed}");
    assert!(invitations.join("secret 2", "m", now).is_ok(), "a refusal does not use it up");
}

#[test]
fn revoking_ends_the_machine_that_joined_by_its_name_and_leaves_a_later_one() {
    let Server { invitations, keys, now, .. } = server();
    (1..=3).for_each(|number| drop(invitations.create(new(number), now).unwrap()));
    let (first, _) = invitations.join("secret 1", "box", now).unwrap();
    assert_eq!(invitations.revoke("box", now).unwrap().1.unwrap().id, first.id);
    assert!(keys.get(&first.id).unwrap().record().revoked.is_some());
    let (second, _) = invitations.join("secret 2", "box", now).unwrap();
    assert_eq!(invitations.revoke("box", now).unwrap().1.unwrap().id, second.id);
    assert!(matches!(invitations.revoke("nobody", now), Err(InvitationError::NotFound(_))));
    assert!(matches!(invitations.revoke("box", now), Err(InvitationError::Ambiguous(_))));
    let states: Vec<_> = invitations
        .list()
        .iter()
        .map(|(record, _)| invitations.state(record, now).as_str())
        .collect();
    assert_eq!(states, ["revoked", "revoked", "open"]);
}

#[test]
fn a_machine_whose_key_was_revoked_elsewhere_counts_as_revoked_and_gets_no_proof() {
    let Server { invitations, keys, now, .. } = server();
    invitations.create(new(1), now).unwrap();
    assert!(invitations.digest("i-1", now).is_some());
    let (key, text) = invitations.join("secret 1", "box", now).unwrap();
    assert_eq!(invitations.digest(key.id.as_str(), now), Some(digest(text.expose()).0));
    assert!(invitations.expects_machines(now));
    keys.revoke(&key.id, now).unwrap();
    assert_eq!(invitations.digest(key.id.as_str(), now), None);
    assert!(!invitations.expects_machines(now), "nobody is expected any more");
    assert_eq!(invitations.digest("k-other", now), None);
}

#[test]
fn so_many_are_open_at_once_and_no_more_and_so_many_are_remembered() {
    let Server { store, invitations, now, .. } = server();
    (0..MAX_OPEN).for_each(|number| drop(invitations.create(new(number), now).unwrap()));
    let refused = invitations.create(new(MAX_OPEN), now).unwrap_err();
    assert!(matches!(refused, InvitationError::TooMany), "{refused}");
    invitations.revoke("i-7", now).unwrap();
    invitations.create(new(MAX_OPEN), now).unwrap();
    let mut later = now;
    for number in MAX_OPEN + 1..=MAX_KEPT + 5 {
        later = later.after(HOUR);
        invitations.create(new(number), later).unwrap();
    }
    assert_eq!(invitations.list().len(), MAX_KEPT);
    assert_eq!(store.load_invitations().unwrap().len(), MAX_KEPT);
}

#[test]
fn an_open_invitation_is_not_forgotten_for_those_that_machines_joined_by() {
    let Server { invitations, now, .. } = server();
    invitations.create(new(0), now).unwrap();
    for number in 1..=MAX_KEPT {
        invitations.create(new(number), now).unwrap();
        if number < MAX_KEPT {
            invitations.join(&format!("secret {number}"), "m", now).unwrap();
        }
    }
    assert_eq!(invitations.list().len(), MAX_KEPT);
    assert!(invitations.join("secret 0", "m", now).is_ok(), "it is still open");
}

#[test]
fn one_that_is_for_this_run_alone_is_not_stored_until_it_is_used() {
    let Server { store, invitations, now, .. } = server();
    (1..=2).for_each(|number| {
        invitations.create(NewInvitation { stored: false, ..new(number) }, now).unwrap();
    });
    assert!(store.load_invitations().unwrap().is_empty());
    invitations.join("secret 1", "m", now).unwrap();
    invitations.revoke("i-2", now).unwrap();
    let stored = store.load_invitations().unwrap();
    assert_eq!(stored.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["i-1"]);
}

#[test]
fn a_use_that_cannot_be_written_gives_no_key() {
    let Server { store, invitations, now, .. } = server();
    invitations.create(new(1), now).unwrap();
    store.fail_writes(true);
    assert!(invitations.join("secret 1", "m", now).is_err());
    store.fail_writes(false);
    assert!(invitations.join("secret 1", "m", now).is_ok(), "it is still open");
}

#[test]
fn spans_and_names_are_bounded() {
    let Server { invitations, now, .. } = server();
    let names = [("", HOUR), ("a\nb", HOUR), (&*"x".repeat(MAX_NAME + 1), HOUR)];
    let spans = [Duration::ZERO, Duration::from_millis(999), LONGEST + HOUR].map(|it| ("m", it));
    for (name, lasts) in names.into_iter().chain(spans) {
        let bad = NewInvitation { name: Some(name.to_owned()), lasts, ..new(1) };
        let refused = invitations.create(bad, now).unwrap_err();
        assert!(matches!(refused, InvitationError::Invalid(_)), "{refused}");
    }
}

#[test]
fn of_two_servers_with_one_invitation_one_lets_a_machine_in() {
    let one = server();
    one.invitations.create(new(1), one.now).unwrap();
    let other = on(&one.store, one.now);
    one.invitations.join("secret 1", "laptop", one.now).unwrap();
    let late = other.invitations.join("secret 1", "desktop", one.now).unwrap_err();
    assert!(matches!(late, NotJoined::Used), "{late}");
    let left = |keys: Vec<KeyRecord>| keys.iter().filter(|key| key.revoked.is_none()).count();
    assert_eq!(left(one.store.load_keys().unwrap()), 1, "the second machine's key does not work");
}

#[test]
fn what_another_server_did_with_invitations_holds_here() {
    let (one, now) = (server(), Moment::now());
    let changes = |whole| {
        let records = one.store.load_invitations().unwrap();
        move || Ok(Changes { whole, records })
    };
    let other = on(&one.store, now);
    let unstored = NewInvitation { stored: false, ..new(9) };
    other.invitations.create(unstored, now).unwrap();
    one.invitations.create(new(1), now).unwrap();
    one.invitations.create(new(2), now).unwrap();
    other.invitations.refresh(changes(false)).unwrap();
    let ids = |server: &Server| -> Vec<String> {
        server.invitations.list().into_iter().map(|(record, _)| record.id).collect()
    };
    assert_eq!(ids(&other), ["i-1", "i-2", "i-9"]);
    one.invitations.revoke("i-1", now).unwrap();
    other.invitations.refresh(changes(false)).unwrap();
    let revoked = other.invitations.join("secret 1", "m", now).unwrap_err();
    assert!(matches!(revoked, NotJoined::Revoked), "{revoked}");
    other.store.fail_writes(true);
    other.invitations.revoke("i-2", now).unwrap_err();
    other.store.fail_writes(false);
    other.invitations.refresh(changes(true)).unwrap();
    let stored = one.store.load_invitations().unwrap();
    assert!(stored.iter().all(|record| record.revoked.is_some()), "written when it can be");
    one.store.forget_invitation("i-1").unwrap();
    other.invitations.refresh(changes(true)).unwrap();
    assert_eq!(ids(&other), ["i-2", "i-9"]);
    let many = |number| InvitationRecord { id: format!("m-{number}"), ..stored[0].clone() };
    let records = (0..3 * MAX_KEPT).map(many).collect();
    other.invitations.refresh(|| Ok(Changes { whole: true, records })).unwrap();
    assert_eq!(ids(&other).len(), 2 * MAX_KEPT);
}
