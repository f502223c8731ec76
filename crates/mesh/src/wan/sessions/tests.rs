//! Sessions as they open, are greeted and end, without sockets.

use protocol::mesh::relay::{FromRelay, forward::relay_data, forward::relay_session};

use super::*;
use crate::{
    settings::Settings,
    testing::{settings, with_passcode},
    wan::fake::FakeNode,
};

/// One end, and what became of its sessions.
struct End {
    node: Arc<FakeNode>,
    sessions: Sessions,
    who: RelayedPeer,
    opened: Vec<NewLink>,
    payloads: Vec<Bytes>,
    ended: Vec<String>,
    failed: Vec<String>,
}

impl End {
    fn new(node: FakeNode, other: &FakeNode, other_is_warren: bool) -> Self {
        let node = Arc::new(node);
        let who = RelayedPeer {
            listed: true,
            warren: other_is_warren.then(|| Seals { psk: other.machine.psk.is_some() }),
        };
        let sessions = Sessions::new(Arc::clone(&node.machine), Arc::default());
        let (opened, payloads) = (Vec::new(), Vec::new());
        Self { node, sessions, who, opened, payloads, ended: Vec::new(), failed: Vec::new() }
    }

    fn id(&self) -> NodeId {
        self.node.id()
    }

    fn open(&mut self, peer: NodeId, id: &str) {
        self.sessions.open(Instant::now(), peer, self.who, id);
    }

    /// Takes a message that a relay has passed on.
    fn hears(&mut self, text: &str) {
        let Ok(FromRelay::Forward(message)) = FromRelay::read(text) else { panic!("{text}") };
        let from = message.from.parse().unwrap();
        self.sessions.forward(Instant::now(), from, self.who, &message);
    }

    /// The messages that it sends.
    fn says(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(output) = self.sessions.poll() {
            match output {
                Output::Send(text) => said.push(text),
                Output::Opened(opened) => self.opened.push(*opened),
                Output::Payload(_, payload) => self.payloads.push(payload),
                Output::Ended(_, why) => self.ended.push(why),
                Output::Failed(_, why) => self.failed.push(why),
            }
        }
        said
    }

    /// Its newest link sends a payload.
    fn sends(&mut self, payload: &[u8]) -> Vec<String> {
        let own = self.id();
        let opened = self.opened.last_mut().unwrap();
        let id = self.sessions.id(opened.handle).unwrap();
        let records = opened.sealer.as_mut().unwrap().counted_pieces(payload).unwrap();
        let frame = |record: &Vec<u8>| {
            words::data(
                &own.to_string(),
                &opened.handle.peer.to_string(),
                &id,
                words::kind::SEALED,
                record,
            )
        };
        records.iter().map(frame).collect()
    }
}

/// Two ends, and a relay between them that passes everything on.
struct Pair(End, End);

impl Pair {
    fn new(one: FakeNode, other: FakeNode) -> Self {
        Self::of(one, other, true)
    }

    fn of(one: FakeNode, other: FakeNode, warrens: bool) -> Self {
        let (mut first, mut second) = (
            End::new(FakeNode::new(0), &other, warrens),
            End::new(FakeNode::new(0), &one, warrens),
        );
        first.set_node(one);
        second.set_node(other);
        Self(first, second)
    }

    /// Passes on until nobody says anything.
    fn settle(&mut self) {
        loop {
            let (one, other) = (self.0.says(), self.1.says());
            if one.is_empty() && other.is_empty() {
                return;
            }
            one.iter().for_each(|text| self.1.hears(text));
            other.iter().for_each(|text| self.0.hears(text));
        }
    }

    fn opened(mut self) -> Self {
        let other = self.1.id();
        self.0.open(other, "Session-1");
        self.settle();
        assert_eq!((self.0.opened.len(), self.1.opened.len()), (1, 1), "{:?}", self.0.failed);
        self
    }
}

impl End {
    fn set_node(&mut self, node: FakeNode) {
        self.node = Arc::new(node);
        self.sessions = Sessions::new(Arc::clone(&self.node.machine), Arc::default());
    }
}

fn pair() -> Pair {
    Pair::new(FakeNode::new(1), FakeNode::new(2))
}

/// A stock peer's message in a session.
fn stock(kind: ForwardKind, from: &NodeId, to: &NodeId) -> String {
    relay_session(kind, &from.to_string(), &to.to_string(), "S-1")
}

fn stock_data(from: &NodeId, to: &NodeId, data: &[u8]) -> String {
    relay_data(&from.to_string(), &to.to_string(), "S-1", data)
}

#[test]
fn two_warrens_seal_their_session_and_learn_who_the_other_is() {
    let mut pair = pair().opened();
    for (end, other) in [(&pair.0, &pair.1), (&pair.1, &pair.0)] {
        let opened = &end.opened[0];
        assert_eq!(opened.handle.peer, other.id());
        assert!(opened.sealer.is_some() && opened.proved && opened.dialect == Dialect::Flat);
        let hello = opened.hello.as_ref().unwrap();
        assert_eq!(hello.device_info.name, other.node.machine.settings.name);
    }
    assert!(pair.0.opened[0].ours && !pair.1.opened[0].ours);
    let large = vec![b'x'; 300_000];
    for frame in pair.0.sends(&large) {
        pair.1.hears(&frame);
    }
    pair.1.says();
    assert_eq!(pair.1.payloads, [large]);
}

#[test]
fn nothing_of_a_sealed_session_can_be_read_in_between() {
    let mut pair = pair();
    let other = pair.1.id();
    pair.0.open(other, "s");
    let mut seen = String::new();
    loop {
        let said = [pair.0.says(), pair.1.says()];
        if said.iter().all(Vec::is_empty) {
            break;
        }
        for text in said.iter().flatten() {
            let Ok(FromRelay::Forward(message)) = FromRelay::read(text) else { panic!("{text}") };
            seen += &String::from_utf8_lossy(&message.data().unwrap_or_default());
        }
        said[0].iter().for_each(|text| pair.1.hears(text));
        said[1].iter().for_each(|text| pair.0.hears(text));
    }
    assert!(pair.0.opened.len() == 1 && !seen.contains("model-") && !seen.contains("deviceInfo"));
}

#[test]
fn a_passcode_is_proved_and_not_sent() {
    let pair =
        Pair::new(FakeNode::of(1, with_passcode("swift")), FakeNode::of(2, with_passcode("swift")));
    assert!(pair.opened().1.opened[0].proved);
}

#[test]
fn another_passcode_opens_nothing_and_the_other_end_gets_the_reason() {
    let mut pair =
        Pair::new(FakeNode::of(1, with_passcode("swift")), FakeNode::of(2, with_passcode("slow")));
    let other = pair.1.id();
    pair.0.open(other, "s");
    pair.settle();
    assert!(pair.0.opened.is_empty() && pair.1.opened.is_empty());
    assert!(pair.0.failed[0].contains("another passcode"), "{:?}", pair.0.failed);
    assert!(pair.1.failed[0].contains("another passcode"), "{:?}", pair.1.failed);
}

#[test]
fn a_node_without_the_passcode_is_refused_unless_it_is_trusted() {
    let mut strangers = Pair::new(FakeNode::new(1), FakeNode::of(2, with_passcode("swift")));
    let other = strangers.1.id();
    strangers.0.open(other, "s");
    strangers.settle();
    assert!(strangers.1.opened.is_empty());
    assert!(strangers.0.failed[0].contains("--mesh-passcode"), "{:?}", strangers.0.failed);
    let trusted = vec![FakeNode::new(1).id()];
    let other = FakeNode::of(2, Settings { trusted, ..with_passcode("swift") });
    assert!(Pair::new(FakeNode::new(1), other).opened().1.opened[0].proved);
}

#[test]
fn a_first_message_that_was_recorded_opens_nothing() {
    let mut pair = pair();
    let (one, other) = (pair.0.id(), pair.1.id());
    pair.0.open(other, "s-1");
    let open = pair.0.says();
    pair.1.hears(&open[0]);
    pair.1.says().iter().for_each(|text| pair.0.hears(text));
    let first = pair.0.says();
    // The relay plays the opening to the same node again, as a new session of that name.
    let mut later = End::new(FakeNode::new(9), &pair.0.node, true);
    later.set_node(FakeNode::new(2));
    later.hears(&open[0]);
    later.hears(&first[0]);
    later.says();
    assert!(later.opened.is_empty() && later.payloads.is_empty());
    // Nor is it worth anything in a session of another name.
    let renamed = first[0].replace("s-1", "s-2");
    later.hears(&relay_session(
        ForwardKind::RelayOpen,
        &one.to_string(),
        &other.to_string(),
        "s-2",
    ));
    later.hears(&renamed);
    later.says();
    assert!(later.failed[0].contains("does not open"), "{:?}", later.failed);
}

#[test]
fn replayed_truncated_and_changed_records_change_nothing_and_are_counted() {
    let mut pair = pair().opened();
    let frames = pair.0.sends(b"{\"one\":1}");
    pair.1.hears(&frames[0]);
    pair.1.hears(&frames[0]);
    let next = pair.0.sends(b"{\"two\":2}");
    let Ok(FromRelay::Forward(message)) = FromRelay::read(&next[0]) else { panic!() };
    let data = message.data().unwrap();
    let (one, other) = (pair.0.id().to_string(), pair.1.id().to_string());
    let mut changed = data.clone();
    changed[12] ^= 1;
    for bad in
        [&data[..data.len() - 1], &data[..9], &data[..1], &changed, b"{\"plain\":1}", b"", b"\x11x"]
    {
        pair.1.hears(&relay_data(&one, &other, "Session-1", bad));
    }
    pair.1.hears(&next[0]);
    pair.1.says();
    assert_eq!(pair.1.payloads, ["{\"one\":1}", "{\"two\":2}"]);
    assert_eq!(pair.1.node.bad("replayed"), 1);
    assert_eq!(pair.1.node.bad("does not open"), 4);
    assert_eq!(pair.1.node.bad("does not belong"), 3);
}

#[test]
fn a_session_with_too_many_changed_records_ends() {
    let mut pair = pair().opened();
    let frames = pair.0.sends(b"{}");
    (0..65).for_each(|_| pair.1.hears(&frames[0]));
    let said = pair.1.says();
    assert!(pair.1.ended[0].contains("changes them"), "{:?}", pair.1.ended);
    said.iter().for_each(|text| pair.0.hears(text));
    pair.0.says();
    assert!(pair.0.ended[0].contains("changes them"), "{:?}", pair.0.ended);
}

#[test]
fn when_both_open_at_once_the_session_of_the_lower_id_stays() {
    for (one, other) in [(1, 2), (2, 1)] {
        let mut pair = Pair::new(FakeNode::new(one), FakeNode::new(other));
        let (first, second) = (pair.0.id(), pair.1.id());
        pair.0.open(second, "of-0");
        pair.1.open(first, "of-1");
        pair.settle();
        assert_eq!((pair.0.opened.len(), pair.1.opened.len()), (1, 1));
        let ours = |end: &End| end.opened[0].ours;
        assert_eq!((ours(&pair.0), ours(&pair.1)), (first < second, second < first));
        assert_eq!((pair.0.sessions.count, pair.1.sessions.count), (1, 1));
        assert!(pair.0.failed.is_empty() && pair.1.failed.is_empty());
    }
}

#[test]
fn a_peer_is_opened_one_session_at_a_time() {
    let mut pair = pair();
    let other = pair.1.id();
    pair.0.open(other, "s-1");
    pair.0.open(other, "s-2");
    assert_eq!(pair.0.says().len(), 1);
}

#[test]
fn a_stock_peer_that_writes_the_flat_form_is_answered_in_it() {
    let mut node = End::new(FakeNode::new(1), &FakeNode::new(7), false);
    let (peer, own) = (FakeNode::new(7).id(), node.id());
    node.hears(&stock(ForwardKind::RelayOpen, &peer, &own));
    node.hears(&stock_data(&peer, &own, br#"{"heartbeat":{}}"#));
    node.says();
    assert_eq!(node.opened[0].dialect, Dialect::Flat);
}

#[test]
fn a_stock_peer_may_open_several_sessions_and_speak_in_one_that_it_never_opened() {
    let mut node = End::new(FakeNode::new(1), &FakeNode::new(7), false);
    let (peer, own) = (FakeNode::new(7).id(), node.id());
    let (from, to) = (peer.to_string(), own.to_string());
    for session in ["a", "b", "c"] {
        if session != "c" {
            node.hears(&relay_session(ForwardKind::RelayOpen, &from, &to, session));
        }
        node.hears(&relay_data(&from, &to, session, b"{\"heartbeat\":{}}"));
    }
    node.says();
    assert_eq!((node.opened.len(), node.payloads.len(), node.ended.len()), (3, 3, 0));
}

#[test]
fn a_session_with_a_stock_node_is_opened_in_the_clear() {
    let mut node = End::new(FakeNode::new(1), &FakeNode::new(7), false);
    let (peer, own) = (FakeNode::new(7).id(), node.id());
    node.open(peer, "S-1");
    let open = format!(
        r#"{{"relayOpen":{{"fromNodeID":"{own}","sessionID":"S-1","toNodeID":"{peer}"}}}}"#
    );
    assert_eq!(node.says(), [open]);
    // Swift writes the same id in upper case, or not.
    node.hears(&stock(ForwardKind::RelayReady, &peer, &own).replace("S-1", "s-1"));
    node.says();
    assert!(node.opened[0].ours && node.opened[0].sealer.is_none());
}

#[test]
fn the_session_that_a_stock_mac_has_opened_is_used_rather_than_a_second_one() {
    let mut node = End::new(FakeNode::new(1), &FakeNode::new(7), false);
    let (peer, own) = (FakeNode::new(7).id(), node.id());
    node.hears(&stock(ForwardKind::RelayOpen, &peer, &own));
    node.says();
    node.open(peer, "ours");
    assert!(node.says().is_empty());
    assert_eq!((node.opened.len(), node.opened[0].ours), (1, false));
}

#[test]
fn nothing_in_the_clear_is_taken_or_opened_where_all_must_be_sealed() {
    let strict = FakeNode::of(1, Settings { require_sealed: true, ..settings() });
    let mut node = End::new(strict, &FakeNode::new(7), false);
    let (peer, own) = (FakeNode::new(7).id(), FakeNode::new(1).id());
    node.hears(&stock(ForwardKind::RelayOpen, &peer, &own));
    let said = node.says();
    assert!(said[0].starts_with("{\"relayClose\"") && said[0].contains("--require-sealed"));
    node.hears(&stock_data(&peer, &own, b"{\"heartbeat\":{}}"));
    node.open(peer, "s");
    node.says();
    assert!(node.opened.is_empty() && node.payloads.is_empty());
    assert!(node.failed[0].contains("--require-sealed"), "{:?}", node.failed);
}

#[test]
fn a_relay_cannot_make_two_warrens_speak_in_the_clear_again() {
    let mut pair = pair().opened();
    let (one, other) = (pair.0.id(), pair.1.id());
    // It lists them as stock peers now.
    pair.1.who.warren = None;
    pair.0.who.warren = None;
    pair.1.hears(&stock(ForwardKind::RelayOpen, &one, &other));
    pair.1.hears(&stock_data(&one, &other, b"{\"heartbeat\":{}}"));
    pair.1.says();
    assert_eq!((pair.1.opened.len(), pair.1.payloads.len()), (1, 0));
    assert!(pair.1.failed[0].contains("known to seal"), "{:?}", pair.1.failed);
    pair.0.hears(&stock(ForwardKind::RelayClose, &other, &one).replace("S-1", "Session-1"));
    pair.0.says();
    pair.0.open(other, "s-2");
    pair.0.says();
    pair.0.hears(&stock(ForwardKind::RelayReady, &other, &one).replace("S-1", "s-2"));
    let said = pair.0.says();
    let Ok(FromRelay::Forward(message)) = FromRelay::read(&said[0]) else { panic!("{said:?}") };
    assert_eq!(message.data().unwrap()[0], words::kind::FIRST);
}

#[test]
fn an_answer_in_the_clear_to_a_handshake_ends_the_session() {
    let mut node = End::new(FakeNode::new(1), &FakeNode::new(2), true);
    let (peer, own) = (FakeNode::new(2).id(), node.id());
    node.open(peer, "S-1");
    node.hears(&stock(ForwardKind::RelayReady, &peer, &own));
    node.hears(&stock_data(&peer, &own, b"{\"helloAck\":{}}"));
    node.says();
    assert!(node.opened.is_empty() && node.failed[0].contains("in the clear"), "{:?}", node.failed);
}

#[test]
fn a_handshake_that_stops_is_given_up_after_ten_seconds() {
    let mut node = End::new(FakeNode::new(1), &FakeNode::new(2), true);
    let (peer, start) = (FakeNode::new(2).id(), Instant::now());
    node.sessions.open(start, peer, node.who, "s");
    let at = node.sessions.next_timeout().unwrap();
    assert_eq!(at - start, OPENED_WITHIN);
    node.sessions.expire(at - Duration::from_millis(1));
    node.says();
    assert!(node.failed.is_empty());
    node.sessions.expire(at);
    let said = node.says();
    assert!(said.last().unwrap().starts_with("{\"relayClose\""), "{said:?}");
    assert!(node.failed[0].contains("in time") && node.sessions.next_timeout().is_none());
}

#[test]
fn a_link_is_not_given_up_for_having_been_opened_long_ago() {
    let pair = pair().opened();
    assert!(pair.0.sessions.next_timeout().is_none() && pair.1.sessions.next_timeout().is_none());
}

#[test]
fn sealed_data_of_an_unknown_session_is_answered_with_a_close() {
    let mut pair = pair().opened();
    let frames = pair.0.sends(b"{}");
    let handle = pair.1.opened[0].handle;
    pair.1.sessions.remove(handle);
    pair.1.hears(&frames[0]);
    let said = pair.1.says();
    said.iter().for_each(|text| pair.0.hears(text));
    pair.0.says();
    assert!(pair.0.ended[0].contains("no such session"), "{:?}", pair.0.ended);
}

#[test]
fn when_a_peer_leaves_or_the_relay_says_so_its_sessions_end() {
    let mut one = pair().opened();
    let other = one.1.id();
    one.0.sessions.gone(&other, "gone");
    one.0.says();
    assert_eq!(one.0.ended, ["gone"]);
    let mut one = pair().opened();
    one.0.sessions.refused("SESSION-1", "no such session");
    one.0.says();
    assert_eq!(one.0.ended, ["no such session"]);
    let mut one = pair();
    one.0.open(other, "s");
    one.0.sessions.lost("broken");
    one.0.says();
    assert_eq!(one.0.failed, ["broken"]);
}

#[test]
fn sessions_are_bounded_for_a_peer_and_for_all() {
    let mut node = End::new(FakeNode::new(1), &FakeNode::new(7), false);
    let own = node.id().to_string();
    let open = |from: &str, number: usize| {
        relay_session(ForwardKind::RelayOpen, from, &own, &format!("s-{number}"))
    };
    let peer = FakeNode::new(7).id().to_string();
    (0..=MAX_OF_PEER).for_each(|number| node.hears(&open(&peer, number)));
    let said = node.says();
    assert!(said.last().unwrap().contains("too many relay sessions"));
    // A message in a session that was never opened would be one more.
    node.hears(&relay_data(&peer, &own, "never-opened", b"{\"heartbeat\":{}}"));
    let said = node.says();
    assert!(said[0].contains("never-opened") && said[0].contains("too many relay sessions"));
    assert!(said.len() == 1 && node.payloads.is_empty(), "{said:?}");
    for number in 0..MAX_SESSIONS {
        let from = NodeId::new([(number % 200) as u8; 32]).to_string();
        node.hears(&open(&from, number));
    }
    let said = node.says();
    assert_eq!(node.sessions.count, MAX_SESSIONS);
    assert!(said.last().unwrap().contains("too many relay sessions"));
    assert_eq!(node.sessions.deadlines.len(), MAX_SESSIONS);
    node.sessions.lost("end");
    assert_eq!((node.sessions.count, node.sessions.deadlines.len()), (0, 0));
}
