//! Histories on a switchboard, without sockets.

#![expect(clippy::needless_pass_by_value, reason = "messages are written where they are used")]

mod histories;

use std::collections::HashSet;

use base::NodeId;
use serde_json::{Value, json};

use super::*;
use crate::{remember::InMemory, settings::Admission};

/// In these tests a text is its own signature.
fn good(_: &NodeId, text: &str, signature: &str) -> bool {
    text == signature
}

struct Hall {
    board: Switchboard,
    now: Now,
    sent: Vec<(Connection, Value)>,
    closed: Vec<(Connection, u16)>,
}

fn id(number: u8) -> String {
    NodeId::new([number; 32]).to_string()
}

impl Hall {
    fn with(settings: Settings) -> Self {
        let board = Switchboard::new(settings, good, Box::new(InMemory::default()));
        let now = Now { instant: Instant::now(), unix_ms: 1_795_170_363_488 };
        Self { board, now, sent: Vec::new(), closed: Vec::new() }
    }

    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn pass(&mut self, seconds: u64) {
        self.now.instant += Duration::from_secs(seconds);
        self.now.unix_ms += seconds * 1000;
    }

    fn line(&mut self) -> Connection {
        self.board.connected(self.now, None).unwrap()
    }

    fn challenged(&mut self) -> Connection {
        let challenge = Challenge { nonce: "n0".to_owned(), host: "relay".to_owned() };
        let line = self.board.connected(self.now, Some(challenge)).unwrap();
        self.drain();
        assert_eq!(self.take(line), [json!({"registerChallenge": {"nonce": "n0"}})]);
        line
    }

    fn text(&mut self, from: Connection, text: &str) -> Standing {
        let text = Utf8Bytes::from(text);
        let message = ToRelay::read(&text);
        let standing = self.board.heard(
            self.now,
            from,
            ReceivedMessage { text: &text, message, has_room: true },
        );
        self.drain();
        standing
    }

    fn say(&mut self, from: Connection, message: Value) -> Standing {
        self.text(from, &message.to_string())
    }

    fn drain(&mut self) {
        while let Some(output) = self.board.poll_output() {
            match output {
                Output::Send { to, text, .. } => self.sent.push((to, text.parse().unwrap())),
                Output::Close { connection, code, .. } => self.closed.push((connection, code)),
            }
        }
    }

    /// The messages that were sent to a connection since the last look.
    fn take(&mut self, to: Connection) -> Vec<Value> {
        let (its, others) = self.sent.drain(..).partition(|(connection, _)| *connection == to);
        self.sent = others;
        let its: Vec<(Connection, Value)> = its;
        its.into_iter().map(|(_, value)| value).collect()
    }

    fn code(&mut self, to: Connection) -> String {
        let sent = self.take(to);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent[0]["error"]["code"].as_str().unwrap_or_else(|| panic!("{sent:?}")).to_owned()
    }

    fn register(&mut self, line: Connection, id: &str, signature: &str) {
        let register = json!({"nodeID": id, "displayName": "name", "signature": signature});
        self.say(line, json!({ "register": register }));
    }

    /// A node that has registered in the stock way.
    fn node(&mut self, number: u8) -> Connection {
        let (line, id) = (self.line(), id(number));
        self.register(line, &id, &id);
        assert_eq!(self.take(line)[0]["registerAck"]["ttlSeconds"], 300);
        line
    }

    fn discover(&mut self, line: Connection, filter: Value) -> Vec<Value> {
        self.say(line, json!({"discover": {"filter": filter}}));
        let mut sent = self.take(line);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent[0]["discoverResponse"]["peers"].take().as_array().unwrap().clone()
    }

    fn pass_on(&mut self, line: Connection, kind: &str, from: u8, to: u8, session: &str) {
        let ends =
            json!({"fromNodeID": id(from), "toNodeID": id(to), "sessionID": session, "x": 1});
        self.say(line, json!({ kind: ends }));
    }
}

fn message(kind: &str, from: u8, to: u8, session: &str) -> Value {
    json!({kind: {"fromNodeID": id(from), "toNodeID": id(to), "sessionID": session, "x": 1}})
}

#[test]
fn frames_that_crash_stock_relays_get_an_error_each_and_the_line_stands() {
    let mut hall = Hall::new();
    let line = hall.line();
    for text in ["null", r#"{"relayData":null}"#, r#"{"register":{"nodeID":5}}"#, "{}", "[]", "7"] {
        hall.text(line, text);
        assert!(hall.code(line).starts_with("invalid_"), "{text}");
    }
    assert!(hall.closed.is_empty());
    let counts = hall.board.counts();
    assert_eq!(
        (counts.refused[&Code::InvalidMessage], counts.refused[&Code::InvalidRegister]),
        (5, 1)
    );
}

#[test]
fn a_connection_registers_one_node_only() {
    let mut hall = Hall::new();
    let owner = hall.node(1);
    let thief = hall.line();
    for signature in ["", "bad", &id(2)] {
        hall.register(thief, &id(1), signature);
        assert_eq!(hall.code(thief), "invalid_signature");
    }
    hall.register(thief, "name-without-key", "");
    assert_eq!(hall.code(thief), "invalid_signature");
    let other = hall.node(2);
    hall.pass_on(other, "relayOpen", 2, 1, "s");
    assert_eq!(hall.take(owner), [message("relayOpen", 2, 1, "s")]);
}

#[test]
fn an_unregistered_connection_can_send_nothing() {
    let mut hall = Hall::new();
    let (node, stranger) = (hall.node(1), hall.line());
    hall.pass_on(stranger, "relayOpen", 2, 1, "s");
    assert_eq!(hall.code(stranger), "not_registered");
    hall.say(stranger, json!({"discover": {"filter": {"modelID": "m".repeat(257)}}}));
    assert_eq!(hall.code(stranger), "not_registered");
    assert!(hall.take(node).is_empty());
}

#[test]
fn a_discover_before_register_is_answered_afterwards_and_once() {
    let mut hall = Hall::with(Settings {
        admission: Admission::Members([1, 2].map(|number| NodeId::new([number; 32])).into()),
        ..Settings::default()
    });
    hall.node(1);
    let gateway = hall.line();
    for _ in 0..2 {
        hall.say(gateway, json!({"discover": {"requestingNodeID": id(2)}}));
    }
    // Nothing is answered before the node has registered.
    assert!(hall.take(gateway).is_empty());
    hall.register(gateway, &id(2), "not its signature");
    assert_eq!(hall.code(gateway), "invalid_signature");
    hall.register(gateway, &id(2), &id(2));
    let messages = hall.take(gateway);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["registerAck"]["nodeID"], id(2));
    assert_eq!(messages[1]["discoverResponse"]["peers"][0]["nodeID"], id(1));
    hall.register(gateway, &id(2), &id(2));
    assert_eq!(hall.take(gateway).len(), 1, "only the acknowledgement");
}

#[test]
fn a_node_sends_only_in_its_own_name() {
    let mut hall = Hall::new();
    let (one, two) = (hall.node(1), hall.node(2));
    hall.pass_on(two, "relayOpen", 3, 1, "s");
    assert_eq!(hall.code(two), "wrong_sender");
    assert!(hall.take(one).is_empty());
}

#[test]
fn a_second_id_on_one_connection_is_refused_and_the_first_stays() {
    let mut hall = Hall::new();
    let (one, other) = (hall.node(1), hall.node(3));
    hall.register(one, &id(2), &id(2));
    assert_eq!(hall.code(one), "invalid_register");
    hall.pass_on(other, "relayOpen", 3, 2, "s");
    let error = json!({"error": {
        "code": "peer_not_found",
        "message": format!("Peer {} is not connected", id(2)),
        "sessionID": "s",
    }});
    assert_eq!(hall.take(other), [error]);
    hall.pass_on(other, "relayOpen", 3, 1, "s");
    assert_eq!(hall.take(one).len(), 1);
}

#[test]
fn the_newest_connection_of_a_node_takes_the_place_of_the_older_one() {
    let mut hall = Hall::new();
    let (old, other) = (hall.node(1), hall.node(2));
    hall.pass_on(other, "relayOpen", 2, 1, "s");
    hall.take(old);
    let new = hall.node(1);
    assert_eq!(hall.closed, [(old, 1012)]);
    assert_eq!(hall.take(other)[0]["peerLeft"]["nodeID"], id(1));
    hall.pass_on(other, "relayData", 2, 1, "s");
    assert_eq!(hall.code(other), "session_not_found", "it was the old connection's");
    hall.pass_on(other, "relayOpen", 2, 1, "s");
    assert_eq!(hall.take(new).len(), 1);
    hall.board.gone(hall.now, old);
    assert_eq!(hall.board.counts().registered, 2, "the old one takes nothing with it");
}

#[test]
fn the_stock_signature_of_a_challenged_node_is_refused_for_thirty_days() {
    let mut hall = Hall::new();
    let line = hall.challenged();
    for wrong in [id(1), format!("warren-register:n1:relay:{}", id(1)), String::new()] {
        hall.register(line, &id(1), &wrong);
        assert_eq!(hall.code(line), "invalid_signature", "{wrong}");
    }
    hall.register(line, &id(1), &format!("warren-register:n0:relay:{}", id(1)));
    assert!(hall.take(line)[0].get("registerAck").is_some());
    let replay = hall.line();
    hall.register(replay, &id(1), &id(1));
    assert_eq!(hall.code(replay), "invalid_signature");
    assert!(hall.closed.is_empty());
    hall.pass(30 * 24 * 60 * 60);
    hall.register(replay, &id(1), &id(1));
    assert!(hall.take(replay)[0].get("registerAck").is_some());
}

#[test]
fn unsigned_nodes_are_taken_where_that_is_wanted_but_never_in_the_place_of_signed_ones() {
    let mut hall = Hall::with(Settings { accept_unsigned: true, ..Settings::default() });
    let signed = hall.node(1);
    let line = hall.line();
    hall.register(line, &id(1), "");
    assert_eq!(hall.code(line), "invalid_signature");
    hall.register(line, &id(2), "bad");
    assert_eq!(hall.code(line), "invalid_signature");
    hall.register(line, "fake-peer", "");
    assert!(hall.take(line)[0].get("registerAck").is_some());
    assert!(hall.closed.is_empty() && hall.take(signed).is_empty());
}

#[test]
fn members_only_means_members_only() {
    let members = HashSet::from([NodeId::new([1; 32])]);
    let admission = Admission::Members(members);
    let mut hall = Hall::with(Settings { admission, ..Settings::default() });
    hall.node(1);
    let line = hall.line();
    hall.register(line, &id(2), &id(2));
    assert_eq!(
        (hall.code(line).as_str(), hall.closed.as_slice()),
        ("not_admitted", &[(line, 1008)][..])
    );
}

#[test]
fn a_session_belongs_to_its_two_ends() {
    let mut hall = Hall::new();
    let (one, two, three) = (hall.node(1), hall.node(2), hall.node(3));
    hall.pass_on(one, "relayData", 1, 2, "s");
    assert_eq!(hall.code(one), "session_not_found", "nobody opened it");
    hall.pass_on(one, "relayOpen", 1, 2, "s");
    hall.pass_on(two, "relayReady", 2, 1, "S");
    hall.pass_on(two, "relayData", 2, 1, "s");
    hall.pass_on(three, "relayData", 3, 2, "s");
    assert_eq!(hall.code(three), "session_not_found");
    let heard = [message("relayReady", 2, 1, "S"), message("relayData", 2, 1, "s")];
    assert_eq!(hall.take(one), heard, "whatever the case of the id");
    assert_eq!(hall.take(two), [message("relayOpen", 1, 2, "s")]);
    hall.pass_on(two, "relayClose", 2, 1, "s");
    hall.pass_on(one, "relayClose", 1, 2, "s");
    hall.pass_on(one, "relayData", 1, 2, "s");
    assert_eq!(hall.take(one)[0], message("relayClose", 2, 1, "s"));
    assert!(hall.take(two).is_empty());
    assert_eq!(hall.board.counts().sessions, 0);
}

#[test]
fn offers_answers_and_candidates_need_no_session() {
    let mut hall = Hall::new();
    let (one, two) = (hall.node(1), hall.node(2));
    for kind in ["offer", "answer", "iceCandidate"] {
        hall.say(two, json!({kind: {"fromNodeID": id(2), "toNodeID": id(1), "mine": {"a": 16.0}}}));
        assert_eq!(hall.take(one)[0][kind]["mine"]["a"], json!(16.0));
    }
}

#[test]
fn the_other_end_of_a_session_hears_that_a_node_left_and_others_only_if_they_asked() {
    let mut hall = Hall::new();
    let (end, watcher, other) = (hall.node(1), hall.node(2), hall.node(3));
    hall.discover(watcher, json!(null));
    let leaver = hall.node(4);
    hall.pass_on(leaver, "relayOpen", 4, 1, "s");
    hall.pass_on(leaver, "relayOpen", 4, 1, "t");
    hall.take(end);
    hall.board.gone(hall.now, leaver);
    hall.drain();
    let left = json!({"peerLeft": {"nodeID": id(4), "displayName": "name"}});
    assert_eq!(hall.take(end), std::slice::from_ref(&left), "once, however many sessions");
    let joined = json!({"peerJoined": {"nodeID": id(4), "displayName": "name"}});
    assert_eq!(hall.take(watcher), [joined, left]);
    assert!(hall.take(other).is_empty());
    assert_eq!(hall.board.counts().sessions, 0);
}

#[test]
fn registering_again_is_announced_as_a_join_only_if_the_offer_has_changed() {
    let mut hall = Hall::new();
    let (one, two, unasking) = (hall.node(1), hall.node(2), hall.node(3));
    hall.discover(two, json!({}));
    let mut registers = |capabilities: Value| {
        let register = json!({"nodeID": id(1), "signature": id(1), "capabilities": capabilities});
        hall.say(one, json!({ "register": register }));
        assert!(hall.take(one)[0].get("registerAck").is_some());
        assert!(hall.take(unasking).is_empty());
        let messages = hall.take(two);
        (messages, hall.discover(two, json!({"modelID": "m"})))
    };
    let joined = |name: &str| json!({"peerJoined": {"nodeID": id(1), "displayName": name}});
    assert_eq!(registers(json!(null)), (vec![], vec![]), "as it was");
    let (messages, listed) = registers(json!({"loadedModels": ["m"]}));
    assert_eq!((messages, listed.len()), (vec![joined("")], 1));
    let (messages, listed) = registers(json!({"loadedModels": ["m"], "temperature": 50}));
    assert!(messages.is_empty(), "{messages:?}");
    assert_eq!(listed[0]["capabilities"]["temperature"], 50, "it is listed as it is");
    let ready = json!({"loadedModels": ["m"], "isAvailable": true});
    assert_eq!(registers(ready).0, [joined("")]);
}

#[test]
fn a_node_that_changes_all_the_time_is_reported_a_few_times() {
    let mut hall = Hall::new();
    let (one, two) = (hall.node(1), hall.node(2));
    hall.discover(two, json!({}));
    let mut messages = Vec::new();
    for round in 0..100 {
        if round == 50 {
            messages.push(hall.take(two).len());
            hall.pass(4);
        }
        let capabilities = json!({"loadedModels": [format!("m{round}")]});
        let register = json!({"nodeID": id(1), "signature": id(1), "capabilities": capabilities});
        hall.say(one, json!({ "register": register }));
    }
    messages.push(hall.take(two).len());
    assert_eq!(messages, [8, 2]);
}

#[test]
fn discover_lists_the_wanted_nodes_without_the_asking_one() {
    let mut hall = Hall::new();
    let asker = hall.node(0);
    for number in 1..=4 {
        let line = hall.line();
        let capabilities = json!({"hardware": {"tier": number, "totalRAMGB": 8 * number},
                                  "loadedModels": [format!("m{number}")]});
        let register =
            json!({"nodeID": id(number), "signature": id(number), "capabilities": capabilities});
        hall.say(line, json!({ "register": register }));
    }
    let mut ask = |filter: Value| {
        let peers = hall.discover(asker, filter);
        let mut tiers: Vec<_> =
            peers.iter().map(|p| p["capabilities"]["hardware"]["tier"].as_u64().unwrap()).collect();
        tiers.sort_unstable();
        tiers
    };
    assert_eq!(ask(json!(null)), [1, 2, 3, 4]);
    assert_eq!(ask(json!({"modelID": "m3"})), [3]);
    assert_eq!(ask(json!({"minTier": 2})), [1, 2], "1 is best");
    assert_eq!(ask(json!({"minRAMGB": 24})), [3, 4]);
    assert_eq!(ask(json!({"maxPeers": 2})).len(), 2);
}

#[test]
fn a_silent_node_is_gone_after_its_ttl_and_an_unregistered_one_sooner() {
    let mut hall = Hall::new();
    let (silent, speaker, stranger) = (hall.node(1), hall.node(2), hall.line());
    hall.pass(30);
    hall.board.sweep(hall.now);
    hall.drain();
    assert_eq!(hall.closed, [(stranger, 1008)]);
    hall.pass(200);
    hall.discover(speaker, json!({}));
    hall.pass(70);
    hall.board.sweep(hall.now);
    hall.drain();
    assert_eq!(hall.closed[1..], [(silent, 1008)]);
    assert_eq!(hall.take(speaker)[0]["peerLeft"]["nodeID"], id(1));
}

#[test]
fn nodes_and_strangers_are_bounded() {
    let settings = Settings { max_nodes: 2, max_strangers: 2, ..Settings::default() };
    let mut hall = Hall::with(settings);
    let _two = (hall.node(1), hall.node(2));
    let line = hall.line();
    hall.register(line, &id(3), &id(3));
    assert_eq!(hall.code(line), "relay_full");
    hall.register(line, &id(2), &id(2));
    assert!(hall.take(line)[0].get("registerAck").is_some(), "who is here may come anew");
    assert!(hall.board.connected(hall.now, None).is_some());
    assert!(hall.board.connected(hall.now, None).is_some());
    assert!(hall.board.connected(hall.now, None).is_none());
}

#[test]
fn sessions_are_bounded_and_those_forgotten_make_room() {
    let mut hall = Hall::with(Settings { max_sessions: 2, ..Settings::default() });
    let (one, two, three) = (hall.node(1), hall.node(2), hall.node(3));
    hall.pass_on(one, "relayOpen", 1, 2, "a");
    hall.pass(30);
    hall.pass_on(one, "relayOpen", 1, 2, "b");
    hall.pass_on(one, "relayOpen", 1, 2, "b");
    assert!(hall.take(one).is_empty(), "opening again is opening once");
    hall.pass_on(three, "relayOpen", 3, 2, "c");
    assert_eq!(hall.code(three), "too_many_sessions");
    hall.pass(31);
    hall.take(two);
    hall.pass_on(three, "relayOpen", 3, 2, "c");
    let closed = hall.take(two);
    assert_eq!(closed[0]["relayClose"]["sessionID"], "a");
    assert_eq!(hall.take(one)[0]["relayClose"]["fromNodeID"], id(2));
    assert_eq!((closed.len(), hall.board.counts().sessions), (2, 2));
}

#[test]
fn one_node_cannot_take_all_the_sessions_that_another_may_have() {
    let mut hall = Hall::new();
    let (taker, victim, other) = (hall.node(1), hall.node(2), hall.node(3));
    for number in 0..16 {
        // Either of the two opens them.
        let (line, from, to) = if number % 2 == 0 { (taker, 1, 2) } else { (victim, 2, 1) };
        hall.pass_on(line, "relayOpen", from, to, &format!("s{number}"));
    }
    assert_eq!((hall.take(taker).len(), hall.take(victim).len()), (8, 8));
    hall.pass_on(taker, "relayOpen", 1, 2, "t");
    assert_eq!(hall.code(taker), "too_many_sessions");
    assert!(hall.take(victim).is_empty());
    hall.pass_on(other, "relayOpen", 3, 2, "t");
    hall.pass_on(taker, "relayOpen", 1, 3, "t");
    assert_eq!((hall.take(victim).len(), hall.take(other).len()), (1, 1), "others are not held up");
    hall.pass_on(taker, "relayClose", 1, 2, "s3");
    hall.pass_on(taker, "relayOpen", 1, 2, "t");
    assert_eq!(hall.take(victim).len(), 2, "one that ends makes room");
    hall.pass(61);
    hall.pass_on(taker, "relayOpen", 1, 2, "u");
    let messages = hall.take(victim);
    assert!(
        messages[0].get("relayClose").is_some() && messages[1].get("relayOpen").is_some(),
        "{messages:?}"
    );
    assert_eq!(hall.board.counts().sessions, 18);
}

#[test]
fn too_many_messages_are_refused_and_then_the_connection_is_closed() {
    let mut hall = Hall::new();
    let line = hall.node(1);
    for _ in 0..20 {
        hall.discover(line, json!({}));
    }
    hall.say(line, json!({"discover": {}}));
    let limited = hall.take(line);
    assert_eq!(limited[0]["error"]["code"], "rate_limited");
    assert_eq!(limited[0]["error"]["retryAfterSeconds"], 1.0);
    for _ in 0..1_000 + MAX_STRIKES {
        hall.text(line, "null");
    }
    assert_eq!(hall.closed, [(line, 1008)]);
}

#[test]
fn data_in_a_session_that_is_not_there_cannot_make_endless_errors() {
    let mut hall = Hall::new();
    let (one, _two) = (hall.node(1), hall.node(2));
    for _ in 0..3_000 {
        hall.pass_on(one, "relayData", 1, 2, "s");
    }
    assert_eq!(hall.closed, [(one, 1008)]);
    assert!(hall.sent.len() <= 2_100, "{}", hall.sent.len());
}

#[test]
fn a_node_above_its_rate_has_to_pause_and_loses_nothing() {
    let bytes = crate::Rate { per_second: 1000.0, burst: 1000.0 };
    let mut hall = Hall::with(Settings { bytes, ..Settings::default() });
    let (one, two) = (hall.node(1), hall.node(2));
    hall.pass_on(one, "relayOpen", 1, 2, "s");
    let mut data = message("relayData", 1, 2, "s");
    data["relayData"]["data"] = json!("x".repeat(3000));
    let standing = hall.say(one, data);
    assert!((2.0..3.0).contains(&standing.pause.as_secs_f64()), "{standing:?}");
    assert_eq!(hall.take(two).len(), 2);
}

#[test]
fn a_session_that_is_given_up_ends_for_both() {
    let mut hall = Hall::new();
    let (one, two) = (hall.node(1), hall.node(2));
    hall.pass_on(one, "relayOpen", 1, 2, "s");
    hall.take(two);
    hall.board.give_up(one, two, "s");
    hall.drain();
    let messages = hall.take(one);
    assert_eq!(messages[0]["error"]["code"], "peer_too_slow");
    assert_eq!(messages[0]["error"]["sessionID"], "s");
    assert_eq!(messages[1]["relayClose"]["fromNodeID"], id(2));
    assert_eq!(hall.take(two)[0]["relayClose"]["fromNodeID"], id(1));
}

#[test]
fn messages_grow_with_the_nodes_and_not_with_their_square() {
    for nodes in [100, 400] {
        let mut hall = Hall::new();
        let line = |n: u64| {
            let (line, id) = (hall.line(), format!("{n:064x}"));
            hall.register(line, &id, &id);
            hall.say(line, json!({"discover": {}}));
            (line, id)
        };
        let lines: Vec<_> = (0..nodes).map(line).collect();
        hall.pass(10);
        let before = hall.board.counts().sent;
        for (line, id) in &lines {
            hall.register(*line, id, id);
            hall.say(*line, json!({"discover": {}}));
        }
        assert_eq!(hall.board.counts().sent - before, 2 * nodes, "of one cycle of stock nodes");
        let before = hall.board.counts().sent;
        for (line, id) in &lines {
            let capabilities = json!({"loadedModels": ["new"]});
            let register = json!({"nodeID": id, "signature": id, "capabilities": capabilities});
            hall.say(*line, json!({ "register": register }));
        }
        let sent = hall.board.counts().sent - before;
        assert!(sent <= 20 * nodes, "{sent} of {nodes} nodes that change at once");
        for (line, _) in lines {
            hall.board.gone(hall.now, line);
            hall.drain();
        }
        let sent = hall.board.counts().sent;
        assert!(sent <= 100 * nodes, "{sent} of {nodes} nodes that came and went at once");
    }
}
