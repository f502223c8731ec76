//! Clients of a plain peer, served here.

use std::sync::{Arc, atomic::Ordering};

use protocol::workspace::{ClientMessage, Role};
use replica::Kind;

use super::{
    workspace::{FLOOD, LINE, Workspace, unknown},
    *,
};
use crate::{Service, tests::Deaf};

/// A member with a workspace and the session S, and a plain peer.
async fn serving() -> (Machine, Arc<Workspace>, Peer) {
    let warren = warren().await;
    let workspace = Arc::<Workspace>::default();
    warren.cluster.serve(Service::Workspace, Arc::new(Arc::clone(&workspace)));
    warren.cluster.watch(Arc::new(Deaf));
    let info = session(S, "node-1", "ours", 0)["info"].to_string();
    warren.cluster.write(Kind::SESSION, S, info).await.unwrap();
    let peer = joined(&warren).await;
    (warren, workspace, peer)
}

fn forwarded(id: &str, payload: &Value) -> Value {
    json!({"type": "forwarded_request", "request_id": id, "payload": payload.to_string(), "hops": 4})
}

fn input(text: &str) -> Value {
    json!({"type": "send_input", "session_id": S, "input": text})
}

async fn response(peer: &mut Peer, id: &str) -> Value {
    let is_it =
        |message: &Value| message["type"] == "forwarded_response" && message["request_id"] == id;
    let response = peer.until_it(is_it).await;
    serde_json::from_str(response["payload"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn input_is_carried_out_and_answered_with_the_sessions_state() {
    let (_warren, workspace, mut peer) = serving().await;
    peer.send(&forwarded("1", &input("hello")));
    let answer = response(&mut peer, "1").await;
    assert_eq!(answer["type"], "session_status_changed");
    assert_eq!((&answer["session"]["id"], &answer["session"]["name"]), (&json!(S), &json!("ours")));
    assert_eq!(workspace.asked(), ["send_input", "keepalive"]);
    let (from, caller) = workspace.callers.lock().unwrap()[0].clone();
    assert_eq!((from.as_str(), caller.who.as_str()), ("plain", "peer:plain"));
    assert!(caller.role == Role::Write && caller.member.is_none());
}

#[tokio::test]
async fn answers_of_their_own_come_back_as_they_are() {
    let (_warren, workspace, mut peer) = serving().await;
    let of_session = |kind| json!({"type": kind, "session_id": S});
    let mut with_id = input("hello");
    with_id["input_id"] = json!("i");
    let rename = json!({"type": "rename_session", "session_id": S, "name": "new"});
    for (id, request, field, value) in [
        ("1", input("fail"), "message", json!("the agent is busy")),
        ("2", with_id, "turn", json!(3)),
        ("3", of_session("get_history"), "data", json!("past")),
        ("4", of_session("kill_session"), "type", json!("session_killed")),
        ("5", rename, "type", json!("session_status_changed")),
        ("6", json!({"type": "list_sessions"}), "sessions", json!([])),
        ("7", json!({"type": "keepalive"}), "type", json!("keepalive_ack")),
    ] {
        peer.send(&forwarded(id, &request));
        assert_eq!(response(&mut peer, id).await[field], value, "{request}");
    }
    let guests = workspace.callers.lock().unwrap().len();
    assert_eq!(guests, 2, "one for the link, and one for the list");
}

#[tokio::test]
async fn a_request_that_comes_again_is_done_once() {
    let (_warren, workspace, mut peer) = serving().await;
    for _ in 0..3 {
        peer.send(&forwarded("1", &input("hello")));
        response(&mut peer, "1").await;
    }
    assert_eq!(workspace.asked(), ["send_input", "keepalive"]);
    // Over another link, too.
    drop(peer);
    let mut peer = joined(&_warren).await;
    peer.send(&forwarded("1", &input("hello")));
    assert_eq!(response(&mut peer, "1").await["type"], "session_status_changed");
    assert_eq!(workspace.asked(), ["send_input", "keepalive"]);
}

#[tokio::test]
async fn requests_without_a_way_or_a_meaning_get_words() {
    let (_warren, workspace, mut peer) = serving().await;
    let mut no_hops = forwarded("1", &input("hello"));
    no_hops["hops"] = json!(0);
    let mut visited = forwarded("2", &input("hello"));
    visited["visited"] = json!(["other", "node-1"]);
    let attach = forwarded("3", &json!({"type": "attach", "session_id": S}));
    let nonsense = forwarded("4", &json!({"type": "nonsense"}));
    for (id, request, words) in [
        ("1", no_hops, "went around"),
        ("2", visited, "went around"),
        ("3", attach, "subscribe_output"),
        ("4", nonsense, "nonsense"),
    ] {
        peer.send(&request);
        let answer = response(&mut peer, id).await;
        assert_eq!(answer["type"], "error");
        assert!(answer["message"].as_str().unwrap().contains(words), "{answer}");
    }
    let elsewhere = json!({"type": "interrupt", "session_id": P});
    peer.send(&forwarded("5", &elsewhere));
    let answer = response(&mut peer, "5").await;
    assert_eq!((&answer["type"], &answer["session_id"]), (&json!("session_unknown"), &json!(P)));
    assert!(workspace.asked().is_empty());
}

#[tokio::test]
async fn a_long_request_holds_up_no_other_and_their_number_is_bounded() {
    let (_warren, workspace, mut peer) = serving().await;
    let handoff = json!({"type": "handoff", "team_id": T, "prompt": "p", "timeout_ms": 1});
    for id in 0..17 {
        peer.send(&forwarded(&format!("long {id}"), &handoff));
    }
    let answer = response(&mut peer, "long 16").await;
    assert!(answer["message"].as_str().unwrap().contains("no more requests"), "{answer}");
    peer.send(&forwarded("short", &input("hello")));
    response(&mut peer, "short").await;
    assert_eq!(workspace.asked().iter().filter(|kind| **kind == "handoff").count(), 16);
}

#[tokio::test]
async fn a_request_for_another_peers_session_is_passed_on_while_it_has_hops() {
    let (warren, workspace, mut peer) = serving().await;
    let mut owner = Peer::greeted(&warren, "owner").await;
    owner.send(&update(&session(P, "owner", "theirs", 1)));
    until("its session is here", || warren.has_session(P, "theirs")).await;
    let interrupt = json!({"type": "interrupt", "session_id": P});
    peer.send(&forwarded("1", &interrupt));
    let request = owner.until("forwarded_request").await;
    assert_eq!((&request["hops"], &request["visited"]), (&json!(3), &json!(["node-1"])));
    let payload: Value = serde_json::from_str(request["payload"].as_str().unwrap()).unwrap();
    assert_eq!(payload, interrupt);
    owner.send(&json!({"type": "forwarded_response", "request_id": request["request_id"],
        "payload": json!({"type": "error", "message": "no"}).to_string()}));
    assert_eq!(response(&mut peer, "1").await["message"], "no");
    let mut last_hop = forwarded("2", &interrupt);
    last_hop["hops"] = json!(1);
    peer.send(&last_hop);
    let answer = response(&mut peer, "2").await;
    assert!(answer["message"].as_str().unwrap().contains("no way"), "{answer}");
    assert!(workspace.asked().is_empty());
}

#[tokio::test]
async fn a_request_that_is_too_long_gets_words() {
    let (_warren, workspace, mut peer) = serving().await;
    peer.send(&forwarded("1", &input(&"x".repeat(1024 * 1024))));
    let answer = response(&mut peer, "1").await;
    assert!(answer["message"].as_str().unwrap().contains("too long"), "{answer}");
    assert!(workspace.asked().is_empty());
}

#[tokio::test]
async fn a_name_that_a_peer_gives_is_given_to_the_session() {
    let (warren, workspace, peer) = serving().await;
    let generation = warren.cluster.directory().get(Kind::SESSION, S).unwrap().generation();
    peer.send(&update(&session(S, "node-1", "theirs", generation + 1)));
    until("it is asked for", || workspace.asked() == ["rename_session"]).await;
    let asked = workspace.asked.lock().unwrap()[0].clone();
    let ClientMessage::RenameSession(of) = asked else { panic!("{asked:?}") };
    assert_eq!(of.name, "theirs");
}

fn subscribe(id: &str, session: &str, after: Option<u64>) -> Value {
    json!({"type": "subscribe_output", "subscriber_id": id, "session_id": session,
        "after_seq": after})
}

#[tokio::test]
async fn output_begins_with_the_screen_or_after_a_number() {
    let (_warren, workspace, mut peer) = serving().await;
    peer.send(&subscribe("a", S, None));
    let first = peer.until("session_output").await;
    assert_eq!((&first["session_id"], &first["seq"]), (&json!(S), &json!(7)));
    assert_eq!(first["data"], "\u{1b}cscreen at 7");
    let second = peer.until("session_output").await;
    assert_eq!((&second["seq"], second["data"].as_str().unwrap().len()), (&json!(8), LINE));
    peer.send(&json!({"type": "unsubscribe_output", "subscriber_id": "a"}));
    until("its guest is gone", || workspace.open.load(Ordering::Relaxed) == 0).await;

    peer.send(&subscribe("b", S, Some(FLOOD * 2)));
    peer.until_it(|message| message["seq"] == FLOOD * 2 + 1).await;
    drop(peer);
    until("its guest is gone", || workspace.open.load(Ordering::Relaxed) == 0).await;
}

#[tokio::test]
async fn a_session_that_is_not_here_is_unknown() {
    let (warren, _workspace, mut peer) = serving().await;
    peer.send(&subscribe("a", P, None));
    assert_eq!(peer.until("session_unknown").await["session_id"], P);
    // The directory has it, and the workspace does not.
    let id = unknown().to_string();
    let info = session(&id, "node-1", "lost", 0)["info"].to_string();
    warren.cluster.write(Kind::SESSION, &id, info).await.unwrap();
    peer.send(&subscribe("b", &id, None));
    assert_eq!(peer.until("session_unknown").await["session_id"], id);
}

#[tokio::test]
async fn a_slow_subscriber_is_repainted_and_costs_bounded_memory() {
    let (warren, workspace, mut peer) = serving().await;
    peer.send(&subscribe("a", S, None));
    let mut most = 0;
    until("the session has written everything", || {
        most = most.max(warren.cluster.plain_waiting());
        workspace.written.load(Ordering::Relaxed) == FLOOD + 7
    })
    .await;
    assert!(most < 1024 * 1024, "{most} bytes waited");
    let (mut count, mut last) = (0, 0);
    while last < FLOOD + 7 {
        let output = peer.until("session_output").await;
        assert!(output["seq"].as_u64().unwrap() > last || count == 0);
        last = output["seq"].as_u64().unwrap();
        count += 1;
        if count > 1 && output["data"].as_str().unwrap().contains("screen") {
            return assert!(count < FLOOD, "something was left out");
        }
    }
    panic!("{count} lines came, and no screen");
}

#[tokio::test]
async fn changes_of_files_are_told_until_nobody_asks() {
    let (_warren, workspace, mut peer) = serving().await;
    let watch = json!({"type": "subscribe_project_files", "subscriber_id": "w", "project_id": P});
    peer.send(&watch);
    until("it is watched", || workspace.asked() == ["watch_project_files"]).await;
    for _ in 0..2 {
        workspace.files_changed.notify_one();
        assert_eq!(peer.until("project_files_changed").await["subscriber_id"], "w");
    }
    peer.send(&json!({"type": "unsubscribe_project_files", "subscriber_id": "w"}));
    until("its guest is gone", || workspace.open.load(Ordering::Relaxed) == 0).await;
    workspace.files_changed.notify_one();
    peer.expect_quiet().await;
}
