//! Facts of the workspace.

use store::workspace::{Change, Fact};

use super::every_own_store;

fn fact(kind: &str, id: &str, json: &str) -> Fact {
    Fact { kind: kind.to_owned(), id: id.to_owned(), json: json.to_owned() }
}

fn forget(kind: &str, id: &str) -> Change {
    Change::Forget { kind: kind.to_owned(), id: id.to_owned() }
}

#[test]
fn facts_are_kept_by_kind_and_id_and_the_last_word_holds() {
    every_own_store(|store| {
        let (one, other) = (fact("session", "b", "1"), fact("session", "a", "2"));
        let elsewhere = fact("project", "a", "3");
        let facts = [one, other.clone(), elsewhere.clone()].map(Change::Keep);
        store.change_facts(&facts).unwrap();
        let newer = fact("session", "b", "4");
        store.change_facts(&[Change::Keep(newer.clone())]).unwrap();
        assert_eq!(store.load_facts("session").unwrap(), [other, newer]);
        assert_eq!(store.load_facts("project").unwrap(), [elsewhere]);
        assert_eq!(store.load_facts("team").unwrap(), []);
    });
}

#[test]
fn forgetting_removes_facts_and_ignores_missing_ones() {
    every_own_store(|store| {
        store.change_facts(&[Change::Keep(fact("team", "a", "{}"))]).unwrap();
        let changes = [forget("team", "nobody"), forget("team", "a"), forget("project", "a")];
        store.change_facts(&changes).unwrap();
        assert_eq!(store.load_facts("team").unwrap(), []);
    });
}

#[test]
fn changes_are_made_in_their_order() {
    every_own_store(|store| {
        let keep = |json| Change::Keep(fact("team", "a", json));
        store.change_facts(&[keep("1"), forget("team", "a"), keep("2")]).unwrap();
        assert_eq!(store.load_facts("team").unwrap(), [fact("team", "a", "2")]);
    });
}
