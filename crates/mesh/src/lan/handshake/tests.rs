//! Both sides against each other and against what stock peers and hostile ones send, in memory.

use std::sync::LazyLock;

use base::{NodeId, Secret};
use bytes::Bytes;
use protocol::mesh::{
    DeviceInfo, WireId,
    cluster::{WarrenHello, encode},
};
use seal::{Identity, PasscodeKey, SealError, stock_hash};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};

use super::*;
use crate::{facts::device_id, lan::sealed_peers::SealedPeers};

static SWIFT: LazyLock<PasscodeKey> = LazyLock::new(|| key("swift eagle"));
static SLOW: LazyLock<PasscodeKey> = LazyLock::new(|| key("slow eagle"));

fn key(passcode: &str) -> PasscodeKey {
    PasscodeKey::derive(&Secret::from(passcode))
}

type Ends = Frames<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

fn pipe() -> (Ends, Ends) {
    let (one, other) = duplex(64 * 1024);
    let frames = |end| {
        let (reader, writer) = split(end);
        Frames::new(reader, writer)
    };
    (frames(one), frames(other))
}

/// A node in the hands of a test.
struct Node {
    identity: Identity,
    instance: u64,
    psk: Option<&'static PasscodeKey>,
    hash: Option<String>,
    trusted: Vec<NodeId>,
    require_sealed: bool,
    sealed_peers: SealedPeers,
    models: usize,
}

fn node(seed: u8) -> Node {
    Node {
        identity: Identity::from_seed([seed; 32]),
        instance: u64::from(seed),
        psk: None,
        hash: None,
        trusted: Vec::new(),
        require_sealed: false,
        sealed_peers: SealedPeers::default(),
        models: 1,
    }
}

impl Node {
    fn swift(mut self) -> Self {
        (self.psk, self.hash) = (Some(&*SWIFT), stock_hash("swift eagle"));
        self
    }

    fn slow(mut self) -> Self {
        (self.psk, self.hash) = (Some(&*SLOW), stock_hash("slow eagle"));
        self
    }

    fn id(&self) -> NodeId {
        self.identity.node_id()
    }

    fn peer(&self) -> PeerId {
        PeerId::Node(self.id())
    }

    fn hello(&self) -> Hello {
        let mut hello = stock(device_id(&self.id()).as_str(), None);
        hello.loaded_models = vec!["a model with a long name".repeat(8); self.models];
        hello.warren = Some(WarrenHello {
            node_id: self.id(),
            version: "1".into(),
            psk: self.psk.is_some(),
            addresses: Vec::new(),
            max_concurrent_requests: Some(2),
            instance: Some(self.instance),
            dial: Some(5),
        });
        hello
    }

    fn local(&self) -> Local<'_> {
        Local {
            identity: &self.identity,
            psk: self.psk,
            hash: self.hash.as_deref(),
            trusted: &self.trusted,
            require_sealed: self.require_sealed,
            sealed_peers: &self.sealed_peers,
            open: self.hello(),
            sealed: self.hello(),
        }
    }
}

/// A stock peer's description of itself.
fn stock(id: &str, hash: Option<&str>) -> Hello {
    Hello {
        device_info: DeviceInfo {
            id: WireId::from(id),
            name: "Mac".into(),
            hardware: protocol::mesh::Hardware::default(),
            registered_at: protocol::mesh::AppleTime(0.0),
            last_seen_at: protocol::mesh::AppleTime(0.0),
            is_current_device: true,
            loaded_models: Vec::new(),
            extra: serde_json::Map::new(),
        },
        protocol_version: 1,
        cluster_passcode_hash: hash.map(str::to_owned),
        loaded_models: vec!["q".into()],
        owner_user_id: None,
        warren: None,
        extra: serde_json::Map::new(),
    }
}

const MAC: &str = "63C9BD98-0000-4000-8000-000000000000";

type Outcome = Result<Greeting, Failure>;

/// One node dials another.
async fn shake(one: &Node, other: &Node, call: Call) -> (Outcome, Outcome) {
    let (mut near, mut far) = pipe();
    let (one, other) = (one.local(), other.local());
    tokio::join!(connect(&mut near, &one, &call), accept(&mut far, &other))
}

/// A word of a stock peer, in the form that all of them write.
fn word(message: &ClusterMessage) -> Vec<u8> {
    encode(message, Dialect::Wrapped)
}

/// The next frame as JSON.
async fn read(frames: &mut Ends) -> Value {
    let frame = frames.incoming.next(MAX_GREETING).await.unwrap();
    serde_json::from_slice(&frame).unwrap()
}

async fn closed(frames: &mut Ends) -> bool {
    matches!(frames.incoming.next(MAX_GREETING).await, Err(Broken::Closed))
}

fn text(outcome: &Outcome) -> String {
    outcome.as_ref().err().map(ToString::to_string).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn two_warrens_seal_their_link_and_know_each_other() {
    for expects in [None, Some(node(2).id())] {
        let (one, other) = (node(1), node(2));
        let call = Call { expects, ..Call::default() };
        let (dialled, answered) = shake(&one, &other, call).await;
        let (dialled, answered) = (dialled.unwrap(), answered.unwrap());
        assert_eq!((dialled.peer, answered.peer), (other.peer(), one.peer()));
        assert_eq!(dialled.order, Order { instance: Some(2), dial: 5 });
        assert_eq!(answered.order, Order { instance: Some(1), dial: 5 });
        assert_eq!((dialled.dialect, answered.dialect), (Dialect::Flat, Dialect::Flat));
        let (mut sealer, mut opener) = (dialled.seals.unwrap().0, answered.seals.unwrap().1);
        let mut record = Vec::new();
        sealer.payload(b"sealed", &mut record).unwrap();
        assert_eq!(opener.record(&record[4..]).unwrap(), Some(Bytes::from_static(b"sealed")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_passcode_is_proved_and_never_sent() {
    let (mut near, mut far) = pipe();
    let (one, other) = (node(1).swift(), node(2).swift());
    let local = one.local();
    let call = Call::default();
    let dials = tokio::spawn(async move {
        let hello = read(&mut far).await;
        (hello, far)
    });
    let dialling = connect(&mut near, &local, &call);
    tokio::pin!(dialling);
    let (hello, far) = tokio::select! {
        seen = dials => seen.unwrap(),
        _ = &mut dialling => unreachable!("nobody answers"),
    };
    drop(far);
    let body = &hello["hello"]["_0"];
    assert_eq!(body["warren"]["psk"], json!(true));
    assert_eq!(body.get("clusterPasscodeHash"), None, "{body}");
    let (dialled, answered) = shake(&one, &other, Call::default()).await;
    assert!(dialled.unwrap().seals.is_some() && answered.unwrap().seals.is_some());
}

#[tokio::test(start_paused = true)]
async fn another_passcode_or_none_is_refused_and_both_ends_are_told() {
    let call = Call::default;
    let (dialled, answered) = shake(&node(1).swift(), &node(2).slow(), call()).await;
    assert!(text(&dialled).contains("another passcode"), "{}", text(&dialled));
    assert!(text(&answered).contains("refused: the answer does not open"), "{}", text(&answered));
    let (dialled, answered) = shake(&node(1), &node(2).slow(), call()).await;
    assert!(text(&dialled).contains("the other has none"), "{}", text(&dialled));
    assert!(text(&answered).contains("the other has none"), "{}", text(&answered));
    let (dialled, answered) = shake(&node(1).swift(), &node(2), call()).await;
    assert!(text(&dialled).contains("the other has none"), "{}", text(&dialled));
    assert!(text(&answered).contains("the other has none"), "{}", text(&answered));
}

#[tokio::test(start_paused = true)]
async fn a_trusted_peer_need_not_prove_the_passcode() {
    let mut trusting = node(2).swift();
    trusting.trusted.push(node(1).id());
    let (dialled, answered) = shake(&node(1), &trusting, Call::default()).await;
    assert!(dialled.is_ok() && answered.is_ok());
    let (dialled, answered) = shake(&trusting, &node(1), Call::default()).await;
    assert!(dialled.is_ok() && answered.is_ok());
    let (dialled, answered) = shake(&trusting, &node(1).swift(), Call::default()).await;
    assert!(dialled.is_ok() && answered.is_ok(), "the other one wants it: both have it");
}

#[tokio::test(start_paused = true)]
async fn a_link_to_oneself_is_told_from_one_to_another_node_with_the_same_key() {
    let (dialled, answered) = shake(&node(1), &node(1), Call::default()).await;
    assert!(matches!(dialled, Err(Failure::Myself)), "{dialled:?}");
    assert!(matches!(answered, Err(Failure::Myself)), "{answered:?}");
    let twin = Node { instance: 99, ..node(1) };
    let (dialled, answered) = shake(&node(1), &twin, Call::default()).await;
    assert!(matches!(dialled, Err(Failure::SameKey)), "{dialled:?}");
    assert!(matches!(answered, Err(Failure::SameKey)), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn claiming_this_node_s_id_is_not_enough() {
    let (own, thief) = (node(1), node(3));
    let mut lie = thief.hello();
    lie.warren.as_mut().unwrap().node_id = own.id();
    let (mut near, mut far) = pipe();
    let local = Local { open: lie.clone(), sealed: lie, ..thief.local() };
    let (answers, call) = (own.local(), Call::default());
    let (dialled, answered) =
        tokio::join!(connect(&mut near, &local, &call), accept(&mut far, &answers));
    assert!(matches!(answered, Err(Failure::Seal(_))), "{answered:?}");
    assert!(dialled.is_err());
}

#[tokio::test(start_paused = true)]
async fn only_who_is_expected_is_linked_to() {
    let call = Call { expects: Some(node(3).id()), ..Call::default() };
    let (dialled, answered) = shake(&node(1), &node(2), call).await;
    assert!(matches!(dialled, Err(Failure::NotThem { .. })), "{dialled:?}");
    assert!(text(&answered).contains("refused: node"), "{}", text(&answered));
}

/// A stock connector says hello; what it is answered.
async fn stock_dials(own: &Node, hello: &Hello) -> (Outcome, Value, Ends) {
    let (mut near, mut far) = pipe();
    let local = own.local();
    near.send(&word(&ClusterMessage::Hello(Box::new(hello.clone())))).await.unwrap();
    let outcome = accept(&mut far, &local).await;
    let answer = read(&mut near).await;
    drop(far);
    (outcome, answer, near)
}

#[tokio::test(start_paused = true)]
async fn a_stock_connector_is_answered_in_its_form() {
    let (outcome, answer, _) = stock_dials(&node(1), &stock(MAC, None)).await;
    let greeted = outcome.unwrap();
    assert_eq!(greeted.peer, PeerId::Device(MAC.to_lowercase()));
    assert_eq!((greeted.dialect, greeted.seals.is_some()), (Dialect::Wrapped, false));
    let ack = &answer["helloAck"]["_0"];
    assert_eq!(ack["protocolVersion"], json!(1));
    assert_eq!(ack.get("clusterPasscodeHash"), None);
}

#[tokio::test(start_paused = true)]
async fn a_stock_connector_needs_the_same_passcode() {
    let swift = stock_hash("swift eagle");
    let own = node(1).swift();
    let (outcome, answer, _) = stock_dials(&own, &stock(MAC, swift.as_deref())).await;
    assert!(outcome.is_ok());
    assert_eq!(answer["helloAck"]["_0"]["clusterPasscodeHash"], json!(swift));
    for (own, hash) in [(&own, None), (&own, Some("00")), (&node(1), swift.as_deref())] {
        let (outcome, answer, mut near) = stock_dials(own, &stock(MAC, hash)).await;
        assert!(text(&outcome).contains("passcode"), "{outcome:?}");
        let reason = answer["linkClosed"]["reason"].as_str().unwrap();
        assert!(reason.contains("passcode") && !answer.to_string().contains("helloAck"));
        assert!(closed(&mut near).await);
    }
}

#[tokio::test(start_paused = true)]
async fn plain_peers_are_refused_where_sealed_ones_are_required() {
    let own = Node { require_sealed: true, ..node(1) };
    let (outcome, answer, _) = stock_dials(&own, &stock(MAC, None)).await;
    assert!(matches!(outcome, Err(Failure::Unsealed)));
    assert!(answer["linkClosed"]["reason"].as_str().unwrap().contains("--require-sealed"));
    let (dialled, _) = stock_listens(&own, Call::default(), &stock(MAC, None)).await;
    assert!(matches!(dialled, Err(Failure::Unsealed)));
}

#[tokio::test(start_paused = true)]
async fn a_stock_peer_has_to_say_who_it_is() {
    for id in ["", "a b", &"a".repeat(65), "é"] {
        let (outcome, ..) = stock_dials_unanswered(&node(1), &stock(id, None)).await;
        assert!(matches!(outcome, Err(Failure::Nameless)), "{id}: {outcome:?}");
    }
}

async fn stock_dials_unanswered(own: &Node, hello: &Hello) -> (Outcome, Value) {
    let (outcome, answer, _) = stock_dials(own, hello).await;
    (outcome, answer)
}

/// A stock listener that answers a hello; the hello that it got.
async fn stock_listens(own: &Node, call: Call, ack: &Hello) -> (Outcome, Value) {
    let (mut near, mut far) = pipe();
    let local = own.local();
    let answers = async {
        let hello = read(&mut far).await;
        far.send(&word(&ClusterMessage::HelloAck(Box::new(ack.clone())))).await.unwrap();
        hello
    };
    tokio::join!(connect(&mut near, &local, &call), answers)
}

#[tokio::test(start_paused = true)]
async fn a_stock_listener_is_greeted_in_its_form_and_without_the_hash() {
    let (outcome, hello) = stock_listens(&node(1), Call::default(), &stock(MAC, None)).await;
    let greeted = outcome.unwrap();
    assert_eq!(greeted.peer, PeerId::Device(MAC.to_lowercase()));
    assert!(greeted.seals.is_none());
    assert_eq!(hello["hello"]["_0"]["deviceInfo"]["name"], json!("Mac"));
    let own = node(1).swift();
    let (outcome, hello) = stock_listens(&own, Call::default(), &stock(MAC, None)).await;
    assert!(matches!(outcome, Err(Failure::OneHasNone)), "{outcome:?}");
    assert_eq!(hello["hello"]["_0"].get("clusterPasscodeHash"), None);
}

#[tokio::test(start_paused = true)]
async fn a_stock_listener_with_the_same_passcode_is_sent_the_hash_when_told_to() {
    let (own, hash) = (node(1).swift(), stock_hash("swift eagle"));
    let call = Call { with_hash: true, ..Call::default() };
    let (outcome, hello) = stock_listens(&own, call, &stock(MAC, hash.as_deref())).await;
    assert!(outcome.is_ok());
    assert_eq!(hello["hello"]["_0"]["clusterPasscodeHash"], json!(hash));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_closes_on_a_hello_is_told_from_others() {
    let (mut near, mut far) = pipe();
    let own = node(1).swift();
    let (local, call) = (own.local(), Call::default());
    let closes = async move {
        read(&mut far).await;
        drop(far);
    };
    let (outcome, ()) = tokio::join!(connect(&mut near, &local, &call), closes);
    assert!(matches!(outcome, Err(Failure::ClosedOnHello)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_was_sealed_is_never_linked_to_in_the_clear() {
    let (own, other) = (node(1), node(2));
    let address = "192.0.2.7:1".parse().unwrap();
    let call = Call { address: Some(address), ..Call::default() };
    shake(&own, &other, call.clone()).await.0.unwrap();
    // In between stands somebody who takes the sign of a Warren away.
    let bare = stock(device_id(&other.id()).as_str(), None);
    let (outcome, _) = stock_listens(&own, Call::default(), &bare).await;
    assert!(matches!(outcome, Err(Failure::Downgrade(_))), "{outcome:?}");
    let (outcome, _) = stock_listens(&own, call, &stock(MAC, None)).await;
    assert!(matches!(outcome, Err(Failure::Downgrade(_))), "{outcome:?}");
    let (outcome, _) = stock_dials_unanswered(&own, &bare).await;
    assert!(matches!(outcome, Err(Failure::Downgrade(_))), "{outcome:?}");
    let expects = Call { expects: Some(node(4).id()), ..Call::default() };
    let (outcome, _) = stock_listens(&own, expects, &stock(MAC, None)).await;
    assert!(matches!(outcome, Err(Failure::Downgrade(_))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_trusted_node_is_never_linked_to_in_the_clear() {
    let other = node(2);
    let own = Node { trusted: vec![node(3).id(), other.id()], ..node(1) };
    let bare = stock(&device_id(&other.id()).as_str().to_ascii_lowercase(), None);
    let (outcome, _) = stock_listens(&own, Call::default(), &bare).await;
    assert!(matches!(outcome, Err(Failure::Downgrade(_))), "{outcome:?}");
    let (outcome, _) = stock_dials_unanswered(&own, &bare).await;
    assert!(matches!(outcome, Err(Failure::Downgrade(_))), "{outcome:?}");
    let (outcome, _) = stock_listens(&own, Call::default(), &stock(MAC, None)).await;
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_is_lost_is_said_again_and_one_that_comes_again_is_answered_again() {
    let (mut near, mut far) = pipe();
    let own = node(1);
    let (local, call) = (own.local(), Call::default());
    let deaf = async {
        let lost = read(&mut far).await;
        let repeat = read(&mut far).await;
        far.send(&word(&ClusterMessage::HelloAck(Box::new(stock(MAC, None))))).await.unwrap();
        lost == repeat
    };
    let (outcome, same) = tokio::join!(connect(&mut near, &local, &call), deaf);
    assert!(outcome.is_ok() && same);

    let (mut near, mut far) = pipe();
    let dialler = node(2);
    let hello = word(&ClusterMessage::Hello(Box::new(dialler.hello())));
    let twice = async {
        near.send(&hello).await.unwrap();
        let first = read(&mut near).await;
        near.send(&hello).await.unwrap();
        assert_eq!(read(&mut near).await, first);
        near.writer.shutdown().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(accept(&mut far, &local), twice);
    assert!(matches!(outcome, Err(Failure::Broken(Broken::Closed))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_silent_for_10_seconds_is_told_so() {
    let (mut near, mut far) = pipe();
    let own = node(1);
    let start = tokio::time::Instant::now();
    assert!(matches!(accept(&mut far, &own.local()).await, Err(Failure::Silent)));
    assert!(start.elapsed() < GREETED_WITHIN + 2 * REFUSED_WITHIN);
    let reason = read(&mut near).await;
    assert_eq!(reason, json!({"linkClosed": {"reason": "it did not say hello within 10 s"}}));
    let (_near, mut far) = pipe();
    let outcome = connect(&mut far, &own.local(), &Call::default()).await;
    assert!(matches!(outcome, Err(Failure::Silent)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_stops_in_the_handshake_is_told_so() {
    let (mut near, mut far) = pipe();
    let own = node(1);
    let hello = word(&ClusterMessage::Hello(Box::new(node(2).hello())));
    near.send(&hello).await.unwrap();
    let outcome = accept(&mut far, &own.local()).await;
    assert!(matches!(outcome, Err(Failure::Unfinished)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn nonsense_before_a_hello_is_passed_over_and_too_much_of_it_is_refused() {
    let nonsense = ["null", "{}", "[]", "7", "\"hello\"", "{\"hello\":null}", "", "\u{12}x"];
    let own = node(1);
    let (mut near, mut far) = pipe();
    for word in nonsense {
        near.send(word.as_bytes()).await.unwrap();
    }
    near.send(&word(&ClusterMessage::Hello(Box::new(stock(MAC, None))))).await.unwrap();
    assert!(accept(&mut far, &own.local()).await.is_ok());
    let (mut near, mut far) = pipe();
    for _ in 0..MAX_OTHERS {
        near.send(b"{}").await.unwrap();
    }
    assert!(matches!(accept(&mut far, &own.local()).await, Err(Failure::NoHello)));
}

#[tokio::test(start_paused = true)]
async fn a_length_of_4_gib_or_an_endless_hello_is_refused() {
    for length in [u32::MAX, MAX_GREETING as u32 + 1] {
        let (mut near, mut far) = pipe();
        near.write(&length.to_be_bytes()).await.unwrap();
        let own = node(1);
        let outcome = accept(&mut far, &own.local()).await;
        assert!(matches!(outcome, Err(Failure::Broken(Broken::TooLong(_)))), "{outcome:?}");
        let refusal = read(&mut near).await;
        assert!(refusal["linkClosed"]["reason"].as_str().unwrap().contains(&length.to_string()));
    }
}

/// The frames of a Warren that dials, one by one, with the listener that it dials.
async fn recorded(one: &Node, other: &Node) -> Vec<Vec<u8>> {
    let (mut near, mut middle_near) = pipe();
    let (mut middle_far, mut far) = pipe();
    let mut sent = Vec::new();
    let passes = async {
        for turn in 0..3 {
            let frame = middle_near.incoming.next(MAX_GREETING).await.unwrap();
            middle_far.send(&frame).await.unwrap();
            sent.push(frame.to_vec());
            if turn < 2 {
                let answer = middle_far.incoming.next(MAX_GREETING).await.unwrap();
                middle_near.send(&answer).await.unwrap();
            }
        }
    };
    let (one, other, call) = (one.local(), other.local(), Call::default());
    let (dialled, answered, ()) =
        tokio::join!(connect(&mut near, &one, &call), accept(&mut far, &other), passes);
    assert!(dialled.is_ok() && answered.is_ok());
    sent
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_replayed_makes_no_link() {
    let (one, other) = (node(1), node(2));
    let sent = recorded(&one, &other).await;
    let (mut near, mut far) = pipe();
    for frame in &sent {
        near.send(frame).await.unwrap();
    }
    let outcome = accept(&mut far, &other.local()).await;
    assert!(matches!(outcome, Err(Failure::Seal(SealError::Unauthentic))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_cut_or_changed_makes_no_link() {
    let (one, other) = (node(1), node(2));
    let sent = recorded(&one, &other).await;
    for length in [1, 33, 81, sent[1].len() - 1] {
        let (mut near, mut far) = pipe();
        near.send(&sent[0]).await.unwrap();
        near.send(&sent[1][..length]).await.unwrap();
        let outcome = accept(&mut far, &other.local()).await;
        assert!(matches!(outcome, Err(Failure::Seal(_))), "{length}: {outcome:?}");
    }
    let (mut near, mut far) = pipe();
    let mut changed = sent[1].clone();
    changed[0] = kind::FIRST_WITH_PASSCODE;
    near.send(&sent[0]).await.unwrap();
    near.send(&changed).await.unwrap();
    let outcome = accept(&mut far, &other.local()).await;
    assert!(matches!(outcome, Err(Failure::OneHasNone)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_is_worth_nothing_at_another_node() {
    let (one, other) = (node(1), node(2));
    let sent = recorded(&one, &other).await;
    let third = node(3);
    let (mut near, mut far) = pipe();
    for frame in &sent[..2] {
        near.send(frame).await.unwrap();
    }
    let outcome = accept(&mut far, &third.local()).await;
    assert!(matches!(outcome, Err(Failure::Seal(SealError::Unauthentic))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_proves_another_id_than_it_claimed_is_refused() {
    let (one, other) = (node(1), node(2));
    let mut lie = one.hello();
    lie.warren.as_mut().unwrap().node_id = node(3).id();
    let local = Local { open: lie, ..one.local() };
    let (mut near, mut far) = pipe();
    let (answers, call) = (other.local(), Call::default());
    let (dialled, answered) =
        tokio::join!(connect(&mut near, &local, &call), accept(&mut far, &answers));
    assert!(dialled.is_err() && matches!(answered, Err(Failure::Seal(_))), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_with_very_many_models_can_still_be_greeted() {
    let many = Node { models: 1_000, ..node(1) };
    let (dialled, answered) = shake(&many, &node(2), Call::default()).await;
    let count = answered.unwrap().hello.loaded_models.len();
    assert!(dialled.is_ok() && (100..1_000).contains(&count), "{count}");
}
