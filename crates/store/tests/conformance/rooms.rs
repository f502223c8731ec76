//! Rooms and their participants.

use base::KeyLimits;
use store::{
    KeyDigest, KeyRecord, KeyStore, ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse,
    SqliteStore,
};

use super::{every_store, keys::key, old};

pub(crate) fn room(id: &str, created: u64) -> RoomRecord {
    RoomRecord {
        id: id.into(),
        short_code: format!("S-{id}"),
        spoken_code: format!("spoken-{id}-42"),
        name: format!("{id}'s \"room\"; DROP TABLE rooms"),
        host_id: "684b583f".to_owned(),
        host_token: KeyDigest([7; 32]),
        password: Some("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".to_owned()),
        defaults: Some("{\"temperature\":0.2}".to_owned()),
        public: true,
        owner: Some("k-1".into()),
        idle_ms: u64::from(u32::MAX) + 1,
        created,
        used: created + 1,
        home: RoomHome::default(),
        epoch: 0,
    }
}

pub(crate) fn home(server: &str) -> RoomHome {
    RoomHome { server: server.to_owned(), start: format!("{server}'s start") }
}

pub(crate) fn participant(room: &str, id: &str, digest: u8) -> ParticipantRecord {
    ParticipantRecord {
        room: room.into(),
        id: id.into(),
        session: KeyDigest([digest; 32]),
        json: "{\"nickname\":\"'; --\"}".to_owned(),
    }
}

/// Sorted: stores promise no order.
fn participants(store: &(impl RoomStore + ?Sized)) -> Vec<ParticipantRecord> {
    let mut all = store.load_participants().unwrap();
    all.sort_by(|a, b| (&a.room, &a.id).cmp(&(&b.room, &b.id)));
    all
}

#[test]
fn rooms_are_kept_as_they_are_the_oldest_first() {
    every_store(|store| {
        let plain = RoomRecord {
            password: None,
            defaults: None,
            public: false,
            owner: None,
            ..room("plain", 2)
        };
        store.save_room(&plain).unwrap();
        store.save_room(&room("b", 1)).unwrap();
        store.save_room(&room("a", 1)).unwrap();
        assert_eq!(store.load_rooms().unwrap(), [room("a", 1), room("b", 1), plain]);
    });
}

#[test]
fn a_room_is_replaced_under_its_id_and_keeps_its_participants() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        store.save_participant(&participant("a", "p", 1)).unwrap();
        let changed = RoomRecord { name: "new".to_owned(), password: None, ..room("a", 1) };
        store.save_room(&changed).unwrap();
        assert_eq!(store.load_rooms().unwrap(), [changed]);
        assert_eq!(participants(store), [participant("a", "p", 1)]);
    });
}

#[test]
fn two_rooms_never_have_the_same_code() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        let short = RoomRecord { short_code: room("a", 1).short_code, ..room("b", 2) };
        let spoken = RoomRecord { spoken_code: room("a", 1).spoken_code, ..room("b", 2) };
        assert!(store.save_room(&short).is_err());
        assert!(store.save_room(&spoken).is_err());
        assert_eq!(store.load_rooms().unwrap(), [room("a", 1)], "nothing is lost");
        store.forget_room(&"a".into()).unwrap();
        store.save_room(&short).unwrap();
    });
}

#[test]
fn a_room_that_is_forgotten_takes_its_participants_with_it() {
    every_store(|store| {
        for id in ["a", "b"] {
            store.save_room(&room(id, 1)).unwrap();
            store.save_participant(&participant(id, "p", 1)).unwrap();
        }
        store.forget_room(&"a".into()).unwrap();
        store.forget_room(&"gone".into()).unwrap();
        assert_eq!(store.load_rooms().unwrap(), [room("b", 1)]);
        assert_eq!(participants(store), [participant("b", "p", 1)]);
        store.save_room(&room("a", 1)).unwrap();
        assert_eq!(participants(store).len(), 1, "a room of the same id has none of them");
    });
}

#[test]
fn the_last_use_of_rooms_is_noted_together() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        store.save_room(&room("b", 2)).unwrap();
        store.touch_rooms(&[("b".into(), 50), ("gone".into(), 51)]).unwrap();
        store.touch_rooms(&[]).unwrap();
        let used = RoomRecord { used: 50, ..room("b", 2) };
        assert_eq!(store.load_rooms().unwrap(), [room("a", 1), used]);
    });
}

#[test]
fn a_room_is_found_by_its_id_and_by_both_codes() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        store.save_room(&room("b", 2)).unwrap();
        let homed = RoomRecord { home: home("kitchen"), epoch: 3, ..room("c", 3) };
        store.save_room(&homed).unwrap();
        for name in ["b", "S-b", "spoken-b-42"] {
            assert_eq!(store.find_room(name).unwrap(), Some(room("b", 2)), "{name}");
        }
        assert_eq!(store.find_room("c").unwrap(), Some(homed));
        for name in ["", "s-b", "d", "'; DROP TABLE rooms; --"] {
            assert_eq!(store.find_room(name).unwrap(), None, "{name}");
        }
    });
}

#[test]
fn of_several_servers_that_claim_a_room_one_gets_it_and_a_new_epoch_begins() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        let claimed = |epoch, by: &str| store.claim_room(&"a".into(), epoch, &home(by)).unwrap();
        let of = |by: &str, epoch| RoomRecord { home: home(by), epoch, ..room("a", 1) };
        assert_eq!(claimed(0, "one"), Some(of("one", 1)));
        assert_eq!(claimed(0, "two"), None, "it came too late");
        assert_eq!(claimed(1, "two"), Some(of("two", 2)));
        assert_eq!(store.find_room("a").unwrap(), Some(of("two", 2)));
        assert_eq!(store.claim_room(&"gone".into(), 0, &home("one")).unwrap(), None);
    });
}

#[test]
fn a_former_home_changes_nothing_and_a_closed_room_stays_closed() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        let before = store.claim_room(&"a".into(), 0, &home("one")).unwrap().unwrap();
        let renamed = RoomRecord { name: "new".to_owned(), ..before.clone() };
        assert!(store.change_room(&renamed).unwrap());
        let after = store.claim_room(&"a".into(), 1, &home("two")).unwrap().unwrap();
        assert_eq!(after, RoomRecord { home: home("two"), epoch: 2, ..renamed });
        assert!(!store.change_room(&before).unwrap());
        assert_eq!(store.find_room("a").unwrap(), Some(after.clone()));
        store.forget_room(&"a".into()).unwrap();
        assert!(!store.change_room(&after).unwrap());
        assert_eq!(store.load_rooms().unwrap(), []);
    });
}

#[test]
fn the_use_of_rooms_is_told_with_the_number_of_participants() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        store.save_room(&room("b", 2)).unwrap();
        for id in ["p", "q"] {
            store.save_participant(&participant("b", id, 1)).unwrap();
        }
        let mut uses = store.room_uses().unwrap();
        uses.sort_by(|one, other| one.room.cmp(&other.room));
        let of = |room: &str, used, participants| RoomUse { room: room.into(), used, participants };
        assert_eq!(uses, [of("a", 2, 0), of("b", 3, 2)]);
        assert_eq!(store.load_participants_of(&"a".into()).unwrap(), []);
        assert_eq!(store.load_participants_of(&"b".into()).unwrap().len(), 2);
    });
}

#[test]
fn a_participant_is_kept_replaced_and_forgotten_in_its_room() {
    every_store(|store| {
        for id in ["a", "b"] {
            store.save_room(&room(id, 1)).unwrap();
            store.save_participant(&participant(id, "p", 1)).unwrap();
        }
        let renewed = ParticipantRecord { json: "{}".to_owned(), ..participant("a", "p", 2) };
        store.save_participant(&renewed).unwrap();
        assert_eq!(participants(store), [renewed, participant("b", "p", 1)]);
        store.forget_participant(&"a".into(), &"p".into()).unwrap();
        store.forget_participant(&"a".into(), &"gone".into()).unwrap();
        store.forget_participant(&"gone".into(), &"p".into()).unwrap();
        assert_eq!(participants(store), [participant("b", "p", 1)]);
    });
}

#[test]
fn nobody_is_in_a_room_that_is_not_there() {
    every_store(|store| {
        assert!(store.save_participant(&participant("gone", "p", 1)).is_err());
        assert_eq!(participants(store), []);
    });
}

#[test]
fn a_key_stays_bound_to_its_room_even_when_that_is_gone() {
    every_store(|store| {
        store.save_room(&room("a", 1)).unwrap();
        let bound = KeyRecord { room: Some("a".into()), ..key("k", 2, 1) };
        store.save_key(&bound).unwrap();
        store.forget_room(&"a".into()).unwrap();
        let free = KeyRecord { room: None, ..key("k-free", 3, 2) };
        store.save_key(&free).unwrap();
        assert_eq!(store.load_keys().unwrap(), [bound, free]);
    });
}

#[test]
fn rooms_outlive_their_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let store = SqliteStore::open(&path).unwrap();
    store.save_room(&room("a", 1)).unwrap();
    store.save_participant(&participant("a", "p", 1)).unwrap();
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.load_rooms().unwrap(), [room("a", 1)]);
    assert_eq!(participants(&store), [participant("a", "p", 1)]);
}

/// A migrated database without rooms still has its keys, bound to no room.
#[test]
fn a_database_without_rooms_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let plain = KeyRecord {
        scopes: Vec::new(),
        models: Vec::new(),
        limits: KeyLimits::default(),
        expires: None,
        room: None,
        ..key("k", 2, 1)
    };
    let old = old::database(&path, 5);
    let insert = "INSERT INTO keys (id, digest, name, prefix, scopes, models, created)
        VALUES ('k', ?1, ?2, ?3, '', '', 1)";
    old.execute(insert, (plain.digest.0, &plain.name, &plain.prefix)).unwrap();
    drop(old);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.load_keys().unwrap(), [plain]);
    store.save_room(&room("a", 1)).unwrap();
    store.save_participant(&participant("a", "p", 1)).unwrap();
    assert_eq!(store.load_rooms().unwrap(), [room("a", 1)]);
}
