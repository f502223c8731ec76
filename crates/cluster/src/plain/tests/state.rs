//! Objects, to and from plain peers.

use std::sync::Arc;

use jiff::{Timestamp, ToSpan as _};
use replica::Kind;

use super::{peer::pass, *};
use crate::plain::news::BETWEEN_SNAPSHOTS;

impl Machine {
    pub(super) fn has_session(&self, id: &str, name: &str) -> bool {
        self.field(Kind::SESSION, id, "name").is_some_and(|has| has == name)
    }

    fn field(&self, kind: Kind, id: &str, field: &str) -> Option<Value> {
        let entry = self.cluster.directory().get(kind, id)?;
        let value: Value = serde_json::from_str(&entry.value).unwrap();
        Some(value[field].clone())
    }

    fn is_gone(&self, kind: Kind, id: &str) -> bool {
        self.cluster.directory().get(kind, id).is_none()
    }
}

async fn own_session(warren: &Machine, name: &str) {
    let info = session(S, "node-1", name, 0)["info"].to_string();
    warren.cluster.write(Kind::SESSION, S, info).await.unwrap();
}

fn project(owner: &str, name: &str, dir: &str, updated_at: Timestamp) -> Value {
    json!({"id": P, "name": name, "working_dir": dir, "node_id": owner,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": updated_at})
}

fn upsert(project: &Value) -> Value {
    json!({"type": "project_upserted", "term": 0, "project": project})
}

fn team(name: &str, last_active: Timestamp) -> Value {
    json!({"type": "team_upserted", "team": {"id": T, "name": name, "leader_session_id": S,
        "worker_session_ids": [], "status": "active", "created_at": "2026-01-01T00:00:00Z",
        "last_active": last_active}})
}

#[tokio::test]
async fn a_peer_is_sent_everything_when_it_joins_and_changes_at_once() {
    let warren = warren().await;
    own_session(&warren, "first").await;
    let dir = json!({"id": P, "name": "p", "working_dir": "/p"}).to_string();
    warren.cluster.write(Kind::PROJECT, P, dir).await.unwrap();
    let mut peer = Peer::greeted(&warren, "plain").await;
    let state = peer.until("state_snapshot").await["state"].take();
    assert_eq!(state["sessions"][S]["info"]["name"], "first");
    assert_eq!(state["sessions"][S]["name"], "first", "bare, too");
    assert_eq!(state["projects"][P]["working_dir"], "/p");
    let shown = warren.cluster.directory().get(Kind::PROJECT, P).unwrap();
    let at: Timestamp = state["projects"][P]["updated_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(u128::from(shown.wall_ms().unwrap()), at.as_millisecond() as u128);

    own_session(&warren, "second").await;
    for kind in ["session_update", "session_upserted"] {
        let update = peer.until(kind).await;
        assert_eq!(update["session"]["info"]["name"], "second");
        assert_eq!(update["session"]["output_history"], json!([]));
        assert!(
            update["session"]["generation"].as_u64() > state["sessions"][S]["generation"].as_u64()
        );
    }
    let team = json!({"id": T, "name": "t", "leader_session_id": S}).to_string();
    warren.cluster.write(Kind::TEAM, T, team).await.unwrap();
    assert_eq!(peer.until("team_upserted").await["team"]["name"], "t");
    warren.cluster.delete(Kind::TEAM, T).await.unwrap();
    assert_eq!(peer.until("team_removed").await["team_id"], T);
    assert_eq!(peer.until("team_deleted").await["team_id"], T);
    warren.cluster.delete(Kind::PROJECT, P).await.unwrap();
    assert_eq!(peer.until("project_deleted").await["project_id"], P);
    warren.cluster.delete(Kind::SESSION, S).await.unwrap();
    assert_eq!(peer.until("session_removed").await["session_id"], S);
}

#[tokio::test]
async fn a_peer_speaks_for_its_own_objects_and_all_members_hear_of_them() {
    let warren = warren().await;
    let other = Machine::start(2, [2; 32], settings(&[warren.address.to_string()])).await;
    let peer = joined(&warren).await;
    let now = Timestamp::now();
    peer.send(&update(&session(S, "plain", "theirs", 1)));
    peer.send(&upsert(&project("plain", "project", "/theirs", now)));
    peer.send(&team("team", now));
    until("the other member has them", || {
        other.has_session(S, "theirs")
            && other.field(Kind::PROJECT, P, "working_dir") == Some(json!("/theirs"))
            && other.field(Kind::TEAM, T, "name") == Some(json!("team"))
    })
    .await;
    peer.send(&update(&session(S, "plain", "renamed", 2)));
    peer.send(&json!({"type": "project_deleted", "project_id": P}));
    peer.send(&json!({"type": "team_deleted", "team_id": T}));
    until("the other member has heard", || {
        other.has_session(S, "renamed")
            && other.is_gone(Kind::PROJECT, P)
            && other.is_gone(Kind::TEAM, T)
    })
    .await;
    peer.send(&json!({"type": "session_removed", "session_id": S}));
    until("it is gone", || other.is_gone(Kind::SESSION, S)).await;
    peer.send(&update(&session(S, "plain", "again", 3)));
    until("a higher generation lives again", || other.has_session(S, "again")).await;
}

#[tokio::test]
async fn a_wrong_word_about_this_members_session_is_answered_above_it() {
    let warren = warren().await;
    own_session(&warren, "ours").await;
    let mut peer = joined(&warren).await;
    let generation =
        |warren: &Machine| warren.cluster.directory().get(Kind::SESSION, S).unwrap().generation();
    let before = generation(&warren);
    peer.send(&json!({"type": "session_removed", "session_id": S}));
    let answer = peer.until("session_update").await;
    assert_eq!(answer["session"]["info"]["name"], "ours");
    assert!(answer["session"]["generation"].as_u64().unwrap() > before);
    // Once more, and it is only repeated: nobody makes this member write without end.
    let before = generation(&warren);
    peer.send(&json!({"type": "session_removed", "session_id": S}));
    peer.until("session_update").await;
    assert_eq!(generation(&warren), before);
    assert!(warren.has_session(S, "ours"));
}

#[tokio::test]
async fn other_members_sessions_are_not_its_business() {
    let warren = warren().await;
    let other = Machine::start(2, [2; 32], settings(&[warren.address.to_string()])).await;
    let info = session(S, "node-2", "others", 0)["info"].to_string();
    other.cluster.write(Kind::SESSION, S, info).await.unwrap();
    until("it is known", || warren.has_session(S, "others")).await;
    let peer = joined(&warren).await;
    peer.send(&update(&session(S, "node-2", "wrong", u64::MAX >> 12)));
    peer.send(&update(&session(S, "plain", "wrong", u64::MAX >> 12)));
    peer.send(&json!({"type": "session_removed", "session_id": S}));
    peer.send(&json!({"type": "peer_display_name_update", "name": "done"}));
    until("all of it was read", || warren.cluster.name_of("plain") == "done").await;
    assert!(warren.has_session(S, "others") && other.has_session(S, "others"));
}

#[tokio::test]
async fn a_project_of_this_member_gets_a_name_and_nothing_else() {
    let warren = warren().await;
    let ours = json!({"id": P, "name": "ours", "working_dir": "/ours"}).to_string();
    warren.cluster.write(Kind::PROJECT, P, ours).await.unwrap();
    let mut peer = joined(&warren).await;
    let soon = Timestamp::now() + 1.second();
    peer.send(&upsert(&project("node-1", "renamed", "/etc", soon)));
    let answer = peer.until("project_upserted").await["project"].take();
    assert_eq!((&answer["name"], &answer["working_dir"]), (&json!("renamed"), &json!("/ours")));
    let at: Timestamp = answer["updated_at"].as_str().unwrap().parse().unwrap();
    assert!(at > soon, "the answer is above what the peer said");
}

#[tokio::test]
async fn a_time_too_far_ahead_is_refused() {
    let warren = warren().await;
    let peer = joined(&warren).await;
    let now = Timestamp::now();
    peer.send(&upsert(&project("plain", "ahead", "/p", now + 90.seconds())));
    peer.send(&team("team", now + 30.seconds()));
    until("the team is taken", || !warren.is_gone(Kind::TEAM, T)).await;
    assert!(warren.is_gone(Kind::PROJECT, P));
}

#[tokio::test]
async fn a_peer_that_offers_what_is_dead_hears_of_it() {
    let warren = warren().await;
    let mut peer = joined(&warren).await;
    let now = Timestamp::now();
    peer.send(&update(&session(S, "plain", "theirs", 1)));
    peer.send(&upsert(&project("plain", "theirs", "/p", now)));
    until("both are known", || {
        !warren.is_gone(Kind::SESSION, S) && !warren.is_gone(Kind::PROJECT, P)
    })
    .await;
    warren.cluster.delete(Kind::PROJECT, P).await.unwrap();
    warren.cluster.delete(Kind::SESSION, S).await.unwrap();
    peer.until("project_deleted").await;
    drop(peer);
    let mut peer = joined(&warren).await;
    let snapshot = json!({"type": "state_snapshot", "state": {
        "sessions": {S: session(S, "plain", "theirs", 1),
            T: session(T, "node-1", "never made", 1)},
        "projects": {P: project("plain", "theirs", "/p", now)}}});
    peer.send(&snapshot);
    let mut removed = Vec::new();
    while removed.len() < 3 {
        let message = peer.next().await.unwrap();
        let id = message["session_id"].as_str().or_else(|| message["project_id"].as_str());
        removed.push(id.unwrap().to_owned());
    }
    removed.sort();
    assert_eq!(removed, [S, P, T]);
}

#[tokio::test]
async fn what_it_knows_already_is_not_said_back() {
    let warren = warren().await;
    own_session(&warren, "ours").await;
    let mut peer = Peer::greeted(&warren, "plain").await;
    let mut state = peer.until("state_snapshot").await["state"].take();
    state["sessions"][P] = session(P, "plain", "theirs", 1);
    peer.send(&json!({"type": "state_snapshot", "state": state}));
    until("its session is here", || warren.has_session(P, "theirs")).await;
    peer.expect_quiet().await;
}

#[tokio::test]
async fn legacy_and_unknown_messages_do_nothing() {
    let warren = warren().await;
    let mut peer = joined(&warren).await;
    for kind in ["heartbeat", "request_vote", "leader_announce", "never_heard_of"] {
        for _ in 0..200 {
            peer.send(&json!({"type": kind, "term": 7}));
        }
    }
    peer.send(&update(&session(S, "plain", "theirs", 1)));
    until("it is still heard", || warren.has_session(S, "theirs")).await;
    peer.expect_quiet().await;
}

#[tokio::test]
async fn two_members_that_adopt_the_same_show_the_same() {
    let one = warren().await;
    let other = Machine::start(2, [2; 32], settings(&[one.address.to_string()])).await;
    until("they are linked", || one.cluster.is_reachable("node-2")).await;
    let (to_one, to_other) = (joined(&one).await, joined(&other).await);
    for (generation, name) in [(1, "first"), (1, "second"), (1, "third"), (2, "fourth")] {
        for peer in [&to_one, &to_other] {
            peer.send(&update(&session(S, "plain", name, generation)));
        }
    }
    let shown = |machine: &Machine| machine.cluster.directory().get(Kind::SESSION, S);
    until("they agree", || {
        let (one, other) = (shown(&one), shown(&other));
        one.is_some_and(|entry| entry.value.contains("fourth") && Some(Arc::clone(&entry)) == other)
    })
    .await;
}

#[tokio::test]
async fn what_others_write_comes_with_a_snapshot_a_minute_later() {
    let settings = Settings { heartbeat: Duration::from_secs(3600), ..settings(&[]) };
    let warren = Machine::start(1, [1; 32], settings).await;
    let other = joined(&warren).await;
    other.send(&update(&session(P, "plain", "gone soon", 1)));
    until("it is known", || warren.has_session(P, "gone soon")).await;
    let mut peer = Peer::greeted(&warren, "peer").await;
    let state = peer.until("state_snapshot").await["state"].take();
    assert_eq!(state["sessions"][P]["info"]["name"], "gone soon");
    other.send(&update(&session(S, "plain", "theirs", 5)));
    other.send(&update(&session(S, "plain", "theirs, renamed", 5)));
    other.send(&json!({"type": "session_removed", "session_id": P}));
    until("all of it is known", || {
        warren.has_session(S, "theirs, renamed") && warren.is_gone(Kind::SESSION, P)
    })
    .await;
    pass(BETWEEN_SNAPSHOTS - Duration::from_secs(10)).await;
    assert!(!peer.has_any(), "not yet");
    pass(Duration::from_secs(10)).await;
    let state = peer.until("state_snapshot").await["state"].take();
    assert_eq!(state["sessions"][S]["info"]["name"], "theirs, renamed");
    assert_eq!(state["sessions"][S]["generation"], 5, "as its owner counts");
    assert_eq!(peer.next().await.unwrap()["type"], "session_removed");
}
