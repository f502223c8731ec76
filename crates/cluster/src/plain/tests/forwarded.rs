//! Clients of this member, served by a plain peer.

use std::sync::Arc;

use bytes::Bytes;
use protocol::workspace::{Role, frame};
use replica::Kind;
use tokio::time::timeout;
use wire::Frame;

use super::{workspace::Workspace, *};
use crate::{Caller, Circuit, Ended, Service, testing::SOON, tests::Deaf};

fn open(machine: &Machine) -> Circuit {
    let caller = Caller { who: "key".to_owned(), role: Role::Write, member: None };
    machine.cluster.open("plain", caller)
}

fn ask(circuit: &Circuit, message: &Value) {
    circuit.send(Frame::from(message.to_string())).unwrap();
}

async fn next(circuit: &mut Circuit) -> Result<Frame, Ended> {
    timeout(SOON, circuit.next()).await.expect("nothing comes")
}

async fn answer(circuit: &mut Circuit) -> Value {
    match next(circuit).await.unwrap() {
        Frame::Text(text) => serde_json::from_str(&text).unwrap(),
        Frame::Binary(bytes) => panic!("a frame of {} bytes", bytes.len()),
    }
}

async fn output(circuit: &mut Circuit) -> (u64, Bytes) {
    loop {
        if let Frame::Binary(bytes) = next(circuit).await.unwrap() {
            let frame = frame::decode(bytes).unwrap();
            assert_eq!(frame.session_id.to_string(), S);
            return (frame.seq, frame.data);
        }
    }
}

/// A member, and a plain peer with the session S.
async fn owning() -> (Machine, Peer) {
    let warren = warren().await;
    let peer = joined(&warren).await;
    peer.send(&update(&session(S, "plain", "theirs", 1)));
    until("its session is here", || warren.has_session(S, "theirs")).await;
    (warren, peer)
}

fn respond(peer: &Peer, request: &Value, payload: &Value) {
    peer.send(&json!({"type": "forwarded_response", "request_id": request["request_id"],
        "payload": payload.to_string()}));
}

fn say(seq: u64, data: &str) -> Value {
    json!({"type": "session_output", "session_id": S, "seq": seq, "data": data})
}

#[tokio::test]
async fn a_client_types_into_a_plain_peers_session() {
    let (warren, mut peer) = owning().await;
    let mut circuit = open(&warren);
    let input = json!({"type": "terminal_input", "session_id": S, "data": "ls\n", "input_id": "i"});
    ask(&circuit, &input);
    let request = peer.until("forwarded_request").await;
    let payload: Value = serde_json::from_str(request["payload"].as_str().unwrap()).unwrap();
    assert_eq!((payload, &request["hops"]), (input, &json!(4)));
    let status = json!({"type": "session_status_changed",
        "session": session(S, "plain", "theirs", 1)["info"]});
    respond(&peer, &request, &status);
    assert_eq!(answer(&mut circuit).await["type"], "session_status_changed");
    assert_eq!(answer(&mut circuit).await, json!({"type": "input_ack", "input_id": "i"}));
}

#[tokio::test]
async fn a_client_follows_a_plain_peers_session() {
    let (warren, mut peer) = owning().await;
    let mut circuit = open(&warren);
    ask(&circuit, &json!({"type": "attach", "session_id": S}));
    assert_eq!(answer(&mut circuit).await["type"], "attached");
    assert_eq!(answer(&mut circuit).await["type"], "session_history");
    let subscribe = peer.until("subscribe_output").await;
    assert_eq!(subscribe["session_id"], S);
    for (seq, data) in [(5, "é\u{1b}[m"), (5, "twice"), (6, "more")] {
        peer.send(&say(seq, data));
    }
    assert_eq!(output(&mut circuit).await, (5, Bytes::from("é\u{1b}[m")));
    assert_eq!(output(&mut circuit).await, (6, Bytes::from("more")));
    drop(circuit);
    let unsubscribe = peer.until("unsubscribe_output").await;
    assert_eq!(unsubscribe["subscriber_id"], subscribe["subscriber_id"]);
}

#[tokio::test]
async fn a_client_goes_on_over_the_peers_next_link() {
    let (warren, mut peer) = owning().await;
    let mut circuit = open(&warren);
    ask(&circuit, &json!({"type": "attach", "session_id": S}));
    peer.until("subscribe_output").await;
    peer.send(&say(8, "before"));
    output(&mut circuit).await;
    ask(&circuit, &json!({"type": "send_input", "session_id": S, "input": "lost"}));
    peer.until("forwarded_request").await;
    drop(peer);
    let lost = answer(&mut circuit).await;
    assert!(lost["message"].as_str().unwrap().contains("not known"), "{lost}");
    // This waits for the next link.
    ask(&circuit, &json!({"type": "send_input", "session_id": S, "input": "kept"}));
    let mut peer = joined(&warren).await;
    assert_eq!(peer.until("subscribe_output").await["after_seq"], 8);
    assert!(peer.until("forwarded_request").await["payload"].as_str().unwrap().contains("kept"));
    peer.send(&say(9, "after"));
    assert_eq!(output(&mut circuit).await, (9, Bytes::from("after")));
}

#[tokio::test]
async fn a_session_that_the_peer_does_not_know_is_ended_and_forgotten() {
    for as_payload in [true, false] {
        let (warren, mut peer) = owning().await;
        let mut circuit = open(&warren);
        ask(&circuit, &json!({"type": "interrupt", "session_id": S}));
        let request = peer.until("forwarded_request").await;
        let unknown = json!({"type": "session_unknown", "session_id": S});
        match as_payload {
            true => respond(&peer, &request, &unknown),
            false => peer.send(&unknown),
        }
        let killed = json!({"type": "session_killed", "session_id": S});
        assert_eq!(answer(&mut circuit).await, killed);
        until("it is gone", || warren.cluster.directory().get(Kind::SESSION, S).is_none()).await;
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_misses_output_and_costs_bounded_memory() {
    let (warren, mut peer) = owning().await;
    let (mut slow, mut quick) = (open(&warren), open(&warren));
    for circuit in [&mut slow, &mut quick] {
        ask(circuit, &json!({"type": "attach", "session_id": S}));
        peer.until("subscribe_output").await;
    }
    let line = "x".repeat(10 * 1024);
    for seq in 1..=1000 {
        peer.send(&say(seq, &line));
        assert_eq!(output(&mut quick).await.0, seq);
    }
    let (mut last, mut bytes) = (0, 0);
    let notice = loop {
        match next(&mut slow).await.unwrap() {
            Frame::Binary(frame) => {
                bytes += frame.len();
                last = frame::decode(frame).unwrap().seq;
            }
            Frame::Text(text) if text.contains("client_notice") => break text,
            Frame::Text(_) => {}
        }
    };
    assert!(notice.contains("output_lagged"), "{notice}");
    assert!(last < 1000 && bytes < 512 * 1024, "{bytes} bytes, up to number {last}");
    assert_eq!(peer.until("subscribe_output").await["after_seq"], last);
    peer.send(&say(1001, "now"));
    assert_eq!(output(&mut slow).await.0, 1001);
}

#[tokio::test]
async fn changes_of_a_plain_peers_files_reach_the_client() {
    let (warren, mut peer) = owning().await;
    let mut circuit = open(&warren);
    ask(&circuit, &json!({"type": "watch_project_files", "project_id": P}));
    let subscribe = peer.until("subscribe_project_files").await;
    peer.send(&json!({"type": "project_files_changed", "subscriber_id": "another's"}));
    peer.send(
        &json!({"type": "project_files_changed", "subscriber_id": subscribe["subscriber_id"]}),
    );
    let changed = json!({"type": "project_files_changed", "project_id": P});
    assert_eq!(answer(&mut circuit).await, changed);
    drop(circuit);
    peer.until("unsubscribe_project_files").await;
}

#[tokio::test]
async fn what_the_peer_cannot_do_gets_words() {
    let (warren, mut peer) = owning().await;
    let mut circuit = open(&warren);
    ask(&circuit, &json!({"type": "git_status", "project_id": P}));
    let error = answer(&mut circuit).await;
    assert!(error["message"].as_str().unwrap().starts_with("a plain peer is a peer"), "{error}");
    // It is asked to take a name, in a message of its own.
    let caller = Caller { who: "key".to_owned(), role: Role::Admin, member: None };
    let mut admin = warren.cluster.open("plain", caller);
    ask(&admin, &json!({"type": "rename_node", "node_id": "plain", "name": "new"}));
    assert_eq!(answer(&mut admin).await["ok"], true);
    assert_eq!(peer.until("peer_rename_node").await["name"], "new");
}

#[tokio::test]
async fn a_peer_that_left_ends_the_circuits_in_time() {
    let (warren, peer) = owning().await;
    drop(peer);
    until("it is gone", || !warren.cluster.is_reachable("plain")).await;
    let mut circuit = open(&warren);
    tokio::time::pause();
    assert_eq!(circuit.next().await, Err(Ended::Unreachable));
}

#[tokio::test]
async fn a_plain_peer_is_reached_through_the_member_that_it_is_linked_to() {
    let (warren, mut peer) = owning().await;
    let workspace = Arc::<Workspace>::default();
    warren.cluster.serve(Service::Workspace, Arc::new(Arc::clone(&workspace)));
    warren.cluster.watch(Arc::new(Deaf));
    let other = Machine::start(2, [2; 32], settings(&[warren.address.to_string()])).await;
    until("the other sees it", || other.cluster.is_reachable("plain")).await;
    assert_eq!(other.cluster.name_of("plain"), "a plain peer");
    let shown = other.cluster.members();
    let shown: Vec<_> = shown.iter().map(|of| (of.member.node_id.as_str(), of.reachable)).collect();
    assert_eq!(shown, [("node-1", true), ("plain", true)]);

    let mut circuit = open(&other);
    ask(&circuit, &json!({"type": "attach", "session_id": S}));
    assert_eq!(answer(&mut circuit).await["type"], "attached");
    peer.until("subscribe_output").await;
    peer.send(&say(5, "through"));
    assert_eq!(output(&mut circuit).await, (5, Bytes::from("through")));
    ask(&circuit, &json!({"type": "send_input", "session_id": S, "input": "there"}));
    let request = peer.until("forwarded_request").await;
    respond(&peer, &request, &json!({"type": "error", "message": "and back"}));
    assert_eq!(answer(&mut circuit).await["message"], "and back");
    drop(circuit);
    peer.until("unsubscribe_output").await;
    assert!(workspace.asked().is_empty(), "it is no business of the member between");

    drop(peer);
    until("it is gone there, too", || !other.cluster.is_reachable("plain")).await;
}
