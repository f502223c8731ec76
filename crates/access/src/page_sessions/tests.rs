//! Sessions in the place of keys, their ends and their bounds.

use base::{KeyId, KeyScope};

use super::*;
use crate::{
    consumer::Denied,
    keys::{Keys, NewKey},
};

const OWNER: &str = "wa_owner";

struct Server {
    store: Arc<VolatileStore>,
    keys: Keys,
    now: Moment,
}

impl Server {
    fn new() -> Self {
        Self::on(&Arc::default(), OWNER, Moment::now())
    }

    fn on(store: &Arc<VolatileStore>, owner: &str, now: Moment) -> Self {
        let keys = Keys::open(Arc::<VolatileStore>::clone(store), now).unwrap();
        let stored = Arc::<VolatileStore>::clone(store);
        keys.set_page_sessions(PageSessions::open(stored, Token::new(&owner.into())).unwrap());
        Self { store: Arc::clone(store), keys, now }
    }

    fn sessions(&self) -> &PageSessions {
        self.keys.page_sessions()
    }

    fn key(&self, expires: Option<u64>) -> (KeyId, Secret) {
        let new = NewKey {
            name: "n".to_owned(),
            scopes: vec![KeyScope::Inference],
            expires,
            ..<_>::default()
        };
        let (record, text) = self.keys.create(new, self.now).unwrap();
        (record.id, text)
    }

    /// A session of this credential's holder.
    fn sign_in(&self, credential: &str) -> Secret {
        let holder = self.keys.holder(credential, self.now).unwrap();
        self.sessions().create(&holder, "Firefox", None, self.now).unwrap().text
    }

    fn used(&self, session: &Secret, now: Moment) -> Result<Option<KeyId>, Denied> {
        let key = self.keys.present(session.expose(), KeyScope::Inference, now)?;
        Ok(key.map(|key| key.id().clone()))
    }
}

#[test]
fn a_session_stands_for_its_key_after_a_restart_too() {
    let server = Server::new();
    let (id, text) = server.key(None);
    let session = server.sign_in(text.expose());
    assert!(session.expose().starts_with("wb_") && session.expose().len() == 67);
    for server in [Server::on(&server.store, OWNER, server.now), server] {
        assert_eq!(server.used(&session, server.now), Ok(Some(id.clone())));
        let denied =
            server.keys.present(session.expose(), KeyScope::Admin, server.now).unwrap_err();
        assert_eq!(denied, Denied::Scope(KeyScope::Admin), "it can do no more");
        assert!(!server.keys.is_owners_session(session.expose(), server.now));
    }
}

#[test]
fn a_session_ends_with_its_key_by_revocation_rotation_and_expiry() {
    let server = Server::new();
    let ended = |end: &dyn Fn(&KeyId)| {
        let (id, text) = server.key(None);
        let session = server.sign_in(text.expose());
        end(&id);
        server.used(&session, server.now)
    };
    let revoked = ended(&|id| drop(server.keys.revoke(id, server.now).unwrap()));
    assert_eq!(revoked, Err(Denied::KeyRevoked));
    assert_eq!(ended(&|id| drop(server.keys.rotate(id).unwrap())), Ok(None));
    let (_, text) = server.key(Some(server.now.seconds() + 60));
    let session = server.sign_in(text.expose());
    let later = server.now.after(Duration::from_secs(61));
    assert_eq!(server.used(&session, later), Err(Denied::KeyExpired));
}

#[test]
fn a_session_ends_after_its_time_and_when_it_is_revoked() {
    let server = Server::new();
    let (id, text) = server.key(None);
    let [first, second] = [(); 2].map(|()| server.sign_in(text.expose()));
    let late = server.now.after(LASTS);
    assert_eq!(
        (server.used(&first, late), server.keys.check(first.expose(), late)),
        (Ok(None), Err(Denied::KeyUnknown))
    );
    let session = server.sessions().find(first.expose(), server.now).unwrap();
    assert!(server.sessions().revoke(session.id().as_str()).unwrap().is_some());
    assert!(server.sessions().revoke(session.id().as_str()).unwrap().is_none());
    assert_eq!(
        (server.used(&first, server.now), server.used(&second, server.now)),
        (Ok(None), Ok(Some(id)))
    );
    server.sessions().forget_expired(late).unwrap();
    assert_eq!(server.store.load_page_sessions().unwrap(), []);
}

#[test]
fn an_owners_session_is_no_key_and_ends_with_the_owners_token() {
    let server = Server::new();
    let session = server.sign_in(OWNER);
    assert_eq!(server.used(&session, server.now), Ok(None));
    assert_eq!(server.keys.check(session.expose(), server.now), Ok(()));
    let is_owners = |server: &Server| server.keys.is_owners_session(session.expose(), server.now);
    assert!(is_owners(&server));
    assert!(is_owners(&Server::on(&server.store, OWNER, server.now)));
    assert!(!is_owners(&Server::on(&server.store, "another", server.now)));
    assert!(!is_owners(&Server::on(&server.store, OWNER, server.now)), "it is forgotten");
}

#[test]
fn a_session_makes_codes_for_its_holder_as_long_as_that_is_what_it_was() {
    let server = Server::new();
    let (id, text) = server.key(None);
    let session = server.sign_in(text.expose());
    let holder = server.keys.holder(session.expose(), server.now).unwrap();
    assert_eq!(holder.key(), Some(&id));
    assert!(server.keys.key_of(&holder, server.now).unwrap().is_some());
    server.keys.rotate(&id).unwrap();
    assert_eq!(server.keys.key_of(&holder, server.now).unwrap_err(), Denied::KeyUnknown);
    assert_eq!(server.keys.holder("wk_no", server.now), Err(Denied::KeyUnknown));
}

#[test]
fn beyond_the_bounds_the_oldest_session_ends() {
    let server = Server::new();
    let (_, text) = server.key(None);
    let [one, other] =
        [OWNER, text.expose()].map(|text| server.keys.holder(text, server.now).unwrap());
    let mut second = 0;
    let mut create = |holder: &Holder| {
        second += 1;
        let now = server.now.after(Duration::from_secs(second));
        server.sessions().create(holder, "", None, now).unwrap()
    };
    let eldest = create(&other);
    let first = create(&one);
    let rest: Vec<_> = (0..MOST_OF_ONE).map(|_| create(&one)).collect();
    let is_there =
        |new: &NewPageSession| server.sessions().find(new.text.expose(), server.now).is_some();
    assert!(!is_there(&first) && rest.iter().all(is_there) && is_there(&eldest));
    let displaced: Vec<_> = rest.iter().filter_map(|new| new.displaced.as_ref()).collect();
    assert_eq!(displaced, [first.session.id()], "its answers have to end");
    let mut displaced = Vec::new();
    for number in 0..MOST {
        let key = Some(format!("k-{number}").as_str().into());
        displaced.extend(create(&Holder { key, ..other.clone() }).displaced);
        assert!(server.store.load_page_sessions().unwrap().len() <= MOST);
    }
    assert!(!is_there(&eldest) && displaced.contains(eldest.session.id()));
}

#[test]
fn a_session_that_cannot_be_written_does_not_begin_and_its_use_is_written_later() {
    let server = Server::new();
    let session = server.sign_in(OWNER);
    let holder = server.sessions().owner().unwrap();
    server.store.fail_writes(true);
    assert!(server.sessions().create(&holder, "", None, server.now).is_err());
    assert_eq!(server.sessions().list(server.now).len(), 1);
    assert!(server.keys.is_owners_session(session.expose(), server.now));
    assert!(server.sessions().save_last_used().is_err());
    server.store.fail_writes(false);
    server.sessions().save_last_used().unwrap();
    let stored = server.store.load_page_sessions().unwrap();
    assert_eq!(stored[0].last_used, Some(server.now.seconds()));
    assert!(!format!("{stored:?}").contains(session.expose()));
}

#[test]
fn a_browsers_name_is_one_short_plain_line() {
    let shown = shown(&format!(" a\u{1b}[31m\r\nb\u{202e}{}", "x".repeat(300)));
    assert!(shown.starts_with("a[31mb") && shown.chars().count() == MAX_BROWSER, "{shown:?}");
}

#[test]
fn what_another_server_made_or_ended_holds_here_and_owners_of_other_tokens_are_left_alone() {
    let one = Server::new();
    let (id, text) = one.key(None);
    let own = one.sign_in(OWNER);
    let session = one.sign_in(text.expose());
    let stored = || one.store.load_page_sessions().unwrap();
    let open = |owner: &str| {
        let store = Arc::<VolatileStore>::clone(&one.store);
        PageSessions::open_shared(store, Token::new(&owner.into())).unwrap()
    };
    let (same, other) = (open(OWNER), open("wa_another"));
    assert!(
        other.find(own.expose(), one.now).is_none() && same.find(own.expose(), one.now).is_some()
    );
    assert_eq!(stored().len(), 2, "nobody's are deleted");
    let later = one.sign_in(text.expose());
    assert!(same.find(later.expose(), one.now).is_none());
    let all = |whole| move |records| Ok(Changes { whole, records });
    same.refresh(|| all(false)(stored())).unwrap();
    other.refresh(|| all(true)(stored())).unwrap();
    for text in [&session, &later] {
        let found = [same.find(text.expose(), one.now), other.find(text.expose(), one.now)];
        assert!(
            found.iter().all(|it| it.as_ref().is_some_and(|it| it.holder().key() == Some(&id)))
        );
    }
    assert!(other.find(own.expose(), one.now).is_none());
    let held = same.list(one.now);
    let mut ids: Vec<_> = held.iter().map(|session| session.id().to_string()).collect();
    let ended = same.refresh(|| all(true)(Vec::new())).unwrap();
    let mut ended: Vec<_> = ended.iter().map(ToString::to_string).collect();
    ids.sort();
    ended.sort();
    assert_eq!((ended, ids.len()), (ids, 3), "their answers have to end");
    assert!(held.iter().all(|session| !session.end()), "their connections have ended");
    assert!(same.list(one.now).is_empty());
    let many = (0..3 * MOST).map(|number| PageSessionRecord {
        digest: digest(&number.to_string()),
        ..stored().pop().unwrap()
    });
    let many: Vec<_> = many.collect();
    same.refresh(|| all(true)(many)).unwrap();
    assert_eq!(same.list(one.now).len(), 2 * MOST);
}
