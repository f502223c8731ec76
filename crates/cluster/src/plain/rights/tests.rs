//! Each right of a plain peer, and each that it does not have.

use protocol::workspace::peer::TeamObject;
use replica::{Dot, Incarnation, Key, Rank};
use serde_json::{Value, json};

use super::*;

const PARTIES: Parties<'_> = Parties { me: "me", peer: "peer" };
const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn entry(owner: &str, version: Version, value: &Value) -> Entry {
    let dot = Dot::new(Incarnation(1), 1);
    let rank = Rank { moves: 0, life: 0, version };
    let (owner, value) = (owner.into(), value.to_string().into());
    Entry { rank, dead: false, dot, birth: dot, earlier: Vec::new(), adopted: false, owner, value }
}

fn known_session(owner: &str, generation: u64) -> Entry {
    entry(
        owner,
        Version::Generation(generation),
        &json!({"id": ID, "name": "old", "node_id": owner}),
    )
}

fn session_offer(owner: &str, generation: u64, name: &str) -> Offer {
    let text = json!({"id": ID, "name": name, "node_id": owner}).to_string();
    SessionObject::from_text(&text, generation).unwrap().into()
}

/// The same without any owner.
fn session_without_owner(generation: u64) -> Offer {
    SessionObject::from_text(&json!({"id": ID}).to_string(), generation).unwrap().into()
}

fn stamp(nanos: i64, node: &str) -> Version {
    Version::Stamp(Time::from_nanos(nanos).stamp(node))
}

const NOW: i64 = 1_700_000_000_000_000_000;

fn known_project(owner: &str) -> Entry {
    let value = json!({"id": ID, "name": "old", "working_dir": "/old", "node_id": owner});
    entry(owner, stamp(NOW, owner), &value)
}

fn project_offer(owner: Option<&str>, nanos: i64, name: &str, dir: &str) -> Offer {
    let updated_at = Time::from_nanos(nanos).timestamp();
    let text = json!({"id": ID, "name": name, "working_dir": dir, "node_id": owner,
        "updated_at": updated_at});
    ProjectObject::from_text(&text.to_string()).unwrap().into()
}

fn known_team(owner: &str) -> Entry {
    entry(owner, stamp(NOW, owner), &json!({"id": ID, "name": "old", "node_id": owner}))
}

fn team_offer(nanos: i64) -> Offer {
    let last_active = Time::from_nanos(nanos).timestamp();
    let text =
        json!({"id": ID, "name": "new", "leader_session_id": ID, "last_active": last_active});
    TeamObject::from_text(&text.to_string()).unwrap().into()
}

fn verdict(known: Option<&Entry>, offer: &Offer) -> Verdict {
    offered(PARTIES, known, offer, None)
}

fn adopted(verdict: Verdict) -> (String, Version, Value, bool) {
    let Verdict::Adopt(Adoption { owner, version, value, answer }) = verdict else {
        panic!("{verdict:?}")
    };
    (owner, version, serde_json::from_str(&value).unwrap(), answer)
}

#[test]
fn it_speaks_for_its_own_sessions() {
    let (owner, version, value, _) = adopted(verdict(None, &session_offer("peer", 5, "new")));
    assert_eq!((owner.as_str(), version), ("peer", Version::Generation(5)));
    assert_eq!(value["name"], "new");
    let (owner, _, value, _) = adopted(verdict(None, &session_without_owner(5)));
    assert_eq!((owner.as_str(), &value["node_id"]), ("peer", &json!("peer")));
    let known = known_session("peer", 5);
    let (_, version, ..) = adopted(verdict(Some(&known), &session_offer("peer", 7, "new")));
    assert_eq!(version, Version::Generation(7));
    assert_eq!(verdict(Some(&known), &session_offer("peer", 5, "old")), Verdict::Ignore);
    assert_eq!(removed(PARTIES, Kind::SESSION, Some(&known)), Verdict::Delete);
}

#[test]
fn its_word_counts_though_it_does_not_count_its_changes() {
    let known = known_session("peer", 5);
    let (_, version, value, _) = adopted(verdict(Some(&known), &session_offer("peer", 5, "new")));
    assert_eq!(version, Version::Generation(6));
    let known = entry("peer", version, &value);
    assert_eq!(owners_generation(&known), 5);
    assert_eq!(verdict(Some(&known), &session_offer("peer", 5, "new")), Verdict::Ignore);
    let (_, version, ..) = adopted(verdict(Some(&known), &session_offer("peer", 5, "newer")));
    assert_eq!(version, Version::Generation(7));
}

#[test]
fn of_this_members_sessions_it_may_change_the_name() {
    let known = known_session("me", 5);
    let offered = |generation, name| verdict(Some(&known), &session_offer("me", generation, name));
    assert_eq!(offered(6, "new"), Verdict::Rename("new".to_owned()));
    assert_eq!(offered(6, "old"), Verdict::Answer);
    assert_eq!(offered(5, "new"), Verdict::Ignore, "an echo");
    assert_eq!(offered(4, "new"), Verdict::Repeat);
    assert_eq!(verdict(Some(&known), &session_offer("peer", 6, "old")), Verdict::Answer);
    assert_eq!(removed(PARTIES, Kind::SESSION, Some(&known)), Verdict::Answer);
    assert_eq!(verdict(None, &session_offer("me", 6, "new")), Verdict::Remove);
}

#[test]
fn of_other_members_sessions_it_says_nothing() {
    let known = known_session("other", 5);
    assert_eq!(verdict(Some(&known), &session_offer("other", 6, "new")), Verdict::Ignore);
    assert_eq!(verdict(Some(&known), &session_offer("peer", 6, "new")), Verdict::Ignore);
    assert_eq!(verdict(None, &session_offer("other", 6, "new")), Verdict::RemoveIfDeleted);
    assert_eq!(removed(PARTIES, Kind::SESSION, Some(&known)), Verdict::Ignore);
    let its = known_session("peer", 5);
    assert_eq!(verdict(Some(&its), &session_offer("other", 6, "new")), Verdict::Ignore);
}

#[test]
fn it_may_make_projects_of_its_own() {
    for owner in [None, Some("peer")] {
        let offer = project_offer(owner, NOW, "new", "/new");
        let (owner, version, value, _) = adopted(verdict(None, &offer));
        assert_eq!((owner.as_str(), version), ("peer", stamp(NOW, "peer")));
        assert_eq!((&value["working_dir"], &value["node_id"]), (&json!("/new"), &json!("peer")));
    }
    let offer = |nanos| project_offer(Some("peer"), nanos, "new", "/new");
    let known = known_project("peer");
    assert_eq!(adopted(verdict(Some(&known), &offer(NOW + 1))).2["working_dir"], "/new");
    assert_eq!(verdict(Some(&known), &offer(NOW)), Verdict::Ignore);
    assert_eq!(verdict(Some(&known), &offer(NOW - 1)), Verdict::Repeat);
}

#[test]
fn of_projects_of_others_it_may_change_the_name_or_delete_them() {
    for owner in ["me", "other"] {
        let known = known_project(owner);
        let offer = |name, dir| project_offer(Some(owner), NOW + 7, name, dir);
        let (adopts, version, value, answer) =
            adopted(verdict(Some(&known), &offer("new", "/old")));
        assert_eq!((adopts.as_str(), version, answer), (owner, stamp(NOW + 7, "peer"), false));
        let renamed = json!({"id": ID, "name": "new", "working_dir": "/old", "node_id": owner,
            "updated_at": Time::from_nanos(NOW + 7).timestamp(), "created_at": value["created_at"]});
        assert_eq!(value, renamed);
        let (_, _, value, answer) = adopted(verdict(Some(&known), &offer("new", "/new")));
        assert_eq!((&value["working_dir"], answer), (&json!("/old"), owner == "me"));
        let more = verdict(Some(&known), &offer("old", "/new"));
        assert_eq!(more, if owner == "me" { Verdict::Answer } else { Verdict::Ignore });
        assert_eq!(removed(PARTIES, Kind::PROJECT, Some(&known)), Verdict::Delete);
    }
    let unknown = |owner| verdict(None, &project_offer(Some(owner), NOW, "new", "/new"));
    assert_eq!(unknown("me"), Verdict::Remove);
    assert_eq!(unknown("other"), Verdict::RemoveIfDeleted);
}

#[test]
fn a_time_that_went_through_other_hands_is_no_change() {
    let known = known_project("me");
    assert_eq!(
        verdict(Some(&known), &project_offer(Some("me"), NOW, "new", "/old")),
        Verdict::Ignore
    );
    let known = entry("me", stamp(NOW + 999_999, "me"), &json!({"id": ID, "name": "old"}));
    let to_the_millisecond = project_offer(Some("me"), NOW, "new", "/old");
    assert_eq!(verdict(Some(&known), &to_the_millisecond), Verdict::Repeat);
}

#[test]
fn teams_are_their_owners_and_anybodys_to_delete() {
    assert_eq!(adopted(verdict(None, &team_offer(NOW))).0, "peer");
    let known = known_team("peer");
    assert_eq!(adopted(verdict(Some(&known), &team_offer(NOW + 1))).2["name"], "new");
    assert_eq!(verdict(Some(&known_team("me")), &team_offer(NOW + 1)), Verdict::Answer);
    assert_eq!(verdict(Some(&known_team("me")), &team_offer(NOW - 1)), Verdict::Repeat);
    assert_eq!(verdict(Some(&known_team("other")), &team_offer(NOW + 1)), Verdict::Ignore);
    assert_eq!(removed(PARTIES, Kind::TEAM, Some(&known_team("me"))), Verdict::Delete);
    assert_eq!(removed(PARTIES, Kind::TEAM, None), Verdict::Ignore);
}

#[test]
fn a_team_belongs_to_the_owner_of_its_leader_unless_it_says_otherwise() {
    let led_by = |owner| offered(PARTIES, None, &team_offer(NOW), Some(owner));
    assert_eq!(adopted(led_by("peer")).0, "peer");
    assert_eq!(led_by("me"), Verdict::Remove);
    assert_eq!(led_by("other"), Verdict::RemoveIfDeleted);
}

#[test]
fn an_object_of_no_use_is_ignored() {
    let broken = entry("me", stamp(NOW, "me"), &json!(7));
    let offer = project_offer(Some("me"), NOW + 1, "new", "/new");
    assert_eq!(verdict(Some(&broken), &offer), Verdict::Ignore);
    let session = known_session("peer", 1);
    let of_a_time = Offer { key: Key::new(Kind::SESSION, ID), ..offer };
    assert_eq!(verdict(Some(&session), &of_a_time), Verdict::Ignore);
}
