//! Stored responses and conversations.

use base::KeyId;
use store::{
    ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
    SqliteStore,
};

const ALL: KeptBounds = KeptBounds { number: 1000, bytes: 1 << 30 };

/// Runs a check with a new store of every kind that keeps responses.
fn every_store(check: impl Fn(&dyn ResponseStore)) {
    let directory = tempfile::tempdir().unwrap();
    check(&SqliteStore::open(&directory.path().join("warren.db")).unwrap());
    #[cfg(feature = "testing")]
    check(&super::shared::store());
}

fn response(id: &str, owner: &str, created: u64) -> ResponseRecord {
    ResponseRecord {
        id: id.to_owned(),
        owner: KeyId::from(owner),
        previous: None,
        conversation: None,
        created,
        beat: None,
        input: format!("[\"{id}\"]"),
        response: "{\"é\":\"\\u0000\"}".to_owned(),
    }
}

fn after(previous: &str, response: ResponseRecord) -> ResponseRecord {
    ResponseRecord { previous: Some(previous.to_owned()), ..response }
}

fn conversation(id: &str, owner: &str, used: u64) -> ConversationRecord {
    let metadata = "{\"a\":\"b\"}".to_owned();
    ConversationRecord { id: id.to_owned(), owner: KeyId::from(owner), created: 1, used, metadata }
}

fn items(ids: &[&str]) -> Vec<ItemRecord> {
    let item =
        |id: &&str| ItemRecord { id: (*id).to_owned(), json: format!("{{\"of\":\"{id}\"}}") };
    ids.iter().map(item).collect()
}

fn ids(records: &[ResponseRecord]) -> Vec<&str> {
    records.iter().map(|record| record.id.as_str()).collect()
}

#[test]
fn a_response_is_found_and_deleted_by_its_own_key_alone() {
    every_store(|store| {
        let (a, b) = (KeyId::from("a"), KeyId::from("b"));
        let record = ResponseRecord {
            conversation: Some("conv_1".to_owned()),
            beat: Some(7),
            ..after("r0", response("r1", "a", 5))
        };
        store.save_response(&record, ALL).unwrap();
        assert_eq!(store.find_response(&a, "r1").unwrap(), Some(record.clone()));
        assert_eq!(store.find_response(&b, "r1").unwrap(), None);
        assert_eq!(store.find_response(&a, "r0").unwrap(), None);
        assert!(store.save_response(&record, ALL).is_err(), "an id is used once");
        assert!(!store.forget_response(&b, "r1").unwrap());
        assert!(store.forget_response(&a, "r1").unwrap());
        assert!(!store.forget_response(&a, "r1").unwrap());
    });
}

#[test]
fn a_chain_goes_back_to_its_first_link_or_to_the_gap() {
    every_store(|store| {
        let (a, all) = (KeyId::from("a"), ChainBounds { links: 100, bytes: 1 << 20 });
        store.save_response(&response("r1", "a", 1), ALL).unwrap();
        store.save_response(&after("r1", response("r2", "a", 2)), ALL).unwrap();
        store.save_response(&after("r2", response("r3", "a", 3)), ALL).unwrap();
        store.save_response(&after("r2", response("r3b", "b", 3)), ALL).unwrap();
        let chain = |owner: &KeyId, id: &str, most| store.response_chain(owner, id, most).unwrap();
        assert_eq!(ids(&chain(&a, "r3", all)), ["r3", "r2", "r1"]);
        assert_eq!(ids(&chain(&KeyId::from("b"), "r3b", all)), ["r3b"], "not into another key's");
        assert!(chain(&KeyId::from("b"), "r3", all).is_empty());
        assert_eq!(ids(&chain(&a, "r3", ChainBounds { links: 2, ..all })), ["r3", "r2"]);
        let two = response("r1", "a", 1).size() * 2;
        let bounded = chain(&a, "r3", ChainBounds { bytes: two - 1, ..all });
        assert_eq!(ids(&bounded), ["r3", "r2"], "the one that exceeds it is there");
        store.forget_response(&a, "r2").unwrap();
        assert_eq!(ids(&chain(&a, "r3", all)), ["r3"]);
    });
}

#[test]
fn the_oldest_responses_of_a_key_make_room_but_not_running_ones() {
    every_store(|store| {
        let a = KeyId::from("a");
        let three = KeptBounds { number: 3, ..ALL };
        let is_there = |id: &str| store.find_response(&a, id).unwrap().is_some();
        store.save_response(&response("other", "b", 0), three).unwrap();
        let running = ResponseRecord { beat: Some(1), ..response("r0", "a", 1) };
        store.save_response(&running, three).unwrap();
        for at in 1..=4 {
            store.save_response(&response(&format!("r{at}"), "a", at + 1), three).unwrap();
        }
        let left: Vec<bool> = (0..=4).map(|at| is_there(&format!("r{at}"))).collect();
        assert_eq!(left, [true, false, true, true, true]);
        let two = KeptBounds { bytes: response("r5", "a", 9).size() * 2, ..ALL };
        store.save_response(&response("r5", "a", 9), two).unwrap();
        let left: Vec<bool> = (0..=5).map(|at| is_there(&format!("r{at}"))).collect();
        assert_eq!(left, [true, false, false, false, true, true]);
        let none = KeptBounds { number: 0, bytes: 0 };
        store.save_response(&response("r6", "a", 1), none).unwrap();
        assert!(is_there("r6") && !is_there("r5"), "the new one stays");
        assert!(store.find_response(&KeyId::from("b"), "other").unwrap().is_some());
    });
}

#[test]
fn a_running_response_changes_until_it_has_ended() {
    every_store(|store| {
        let a = KeyId::from("a");
        let running = ResponseRecord { beat: Some(1), ..response("r1", "a", 1) };
        store.save_response(&running, ALL).unwrap();
        let found = || store.find_response(&a, "r1").unwrap().unwrap();
        assert!(store.change_running(&a, "r1", None, Some(2)).unwrap());
        assert_eq!(found(), ResponseRecord { beat: Some(2), ..running });
        assert!(!store.change_running(&KeyId::from("b"), "r1", Some("{}"), None).unwrap());
        store.lose_running().unwrap();
        assert_eq!(found().beat, Some(0));
        assert!(store.change_running(&a, "r1", Some("{\"x\":1}"), None).unwrap());
        assert_eq!((found().response.as_str(), found().beat), ("{\"x\":1}", None));
        assert!(!store.change_running(&a, "r1", Some("{}"), Some(3)).unwrap(), "it has ended");
        store.lose_running().unwrap();
        assert_eq!(found().beat, None);
    });
}

#[test]
fn items_of_a_conversation_stay_in_their_order() {
    every_store(|store| {
        let (a, b) = (KeyId::from("a"), KeyId::from("b"));
        store.save_conversation(&conversation("c1", "a", 1), &items(&["z", "y"]), ALL).unwrap();
        assert!(store.add_items(&a, "c1", &items(&["x"]), 9, ALL).unwrap());
        assert!(!store.add_items(&b, "c1", &items(&["w"]), 9, ALL).unwrap());
        assert!(store.add_items(&a, "c1", &items(&["v", "x"]), 9, ALL).is_err(), "an id twice");
        assert_eq!(store.items(&a, "c1").unwrap(), Some(items(&["z", "y", "x"])));
        assert_eq!((store.items(&b, "c1").unwrap(), store.items(&a, "c2").unwrap()), (None, None));
        assert!(!store.forget_item(&b, "c1", "y").unwrap());
        assert!(store.forget_item(&a, "c1", "y").unwrap());
        assert!(!store.forget_item(&a, "c1", "y").unwrap());
        assert_eq!(store.items(&a, "c1").unwrap(), Some(items(&["z", "x"])));
        let used = ConversationRecord { used: 9, ..conversation("c1", "a", 9) };
        assert_eq!(store.find_conversation(&a, "c1").unwrap(), Some(used));
        assert_eq!(store.find_conversation(&b, "c1").unwrap(), None);
        assert!(!store.change_conversation(&b, "c1", "{}").unwrap());
        assert!(store.change_conversation(&a, "c1", "{}").unwrap());
        assert_eq!(store.find_conversation(&a, "c1").unwrap().unwrap().metadata, "{}");
        assert!(!store.forget_conversation(&b, "c1").unwrap());
        assert!(store.forget_conversation(&a, "c1").unwrap());
        assert_eq!(store.items(&a, "c1").unwrap(), None);
        store.save_conversation(&conversation("c1", "a", 1), &[], ALL).unwrap();
        assert_eq!(store.items(&a, "c1").unwrap(), Some(Vec::new()), "its items are gone");
    });
}

#[test]
fn the_conversations_that_were_not_used_for_the_longest_time_make_room() {
    every_store(|store| {
        let (a, two) = (KeyId::from("a"), KeptBounds { number: 2, ..ALL });
        let there = |id: &str| store.find_conversation(&a, id).unwrap().is_some();
        for (id, used) in [("c1", 1), ("c2", 2)] {
            store.save_conversation(&conversation(id, "a", used), &[], two).unwrap();
        }
        store.add_items(&a, "c1", &items(&["x"]), 3, two).unwrap();
        store.save_conversation(&conversation("c3", "a", 4), &[], two).unwrap();
        assert_eq!((there("c1"), there("c2"), there("c3")), (true, false, true));
        let small = KeptBounds { bytes: 10, ..ALL };
        assert!(store.add_items(&a, "c3", &items(&["x"]), 5, small).unwrap());
        assert_eq!((there("c1"), there("c3")), (false, true));
        store.save_conversation(&conversation("c4", "b", 1), &items(&["x", "y"]), ALL).unwrap();
        for item in ["x", "y"] {
            assert!(store.forget_item(&KeyId::from("b"), "c4", item).unwrap());
        }
        store.save_conversation(&conversation("c5", "b", 2), &[], small).unwrap();
        let is_there = store.find_conversation(&KeyId::from("b"), "c4").unwrap().is_some();
        assert!(is_there, "deleted items take no place");
    });
}

#[test]
fn what_is_too_old_or_of_a_key_that_is_gone_is_deleted() {
    every_store(|store| {
        let (a, b) = (KeyId::from("a"), KeyId::from("b"));
        for (id, owner, at) in [("r1", "a", 1), ("r2", "a", 2), ("r3", "b", 3)] {
            store.save_response(&response(id, owner, at), ALL).unwrap();
        }
        store.save_conversation(&conversation("c1", "c", 1), &items(&["x"]), ALL).unwrap();
        store.save_conversation(&conversation("c2", "a", 2), &[], ALL).unwrap();
        let mut owners = store.kept_owners().unwrap();
        owners.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        assert_eq!(owners, ["a".into(), "b".into(), "c".into()]);
        assert_eq!(store.forget_kept_before(2).unwrap(), 2);
        assert_eq!(store.forget_kept_before(2).unwrap(), 0);
        assert_eq!(store.forget_kept_of(&a).unwrap(), 2);
        assert_eq!(store.kept_owners().unwrap(), [b]);
    });
}
