//! Real nodes over TCP on this machine, and stock peers and hostile ones frame for frame.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use protocol::mesh::frame;
use seal::{Identity, stock_hash};
use serde_json::{Value, json};
use testkit::{DEADLINE, eventually, within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use super::*;
use crate::{
    node::Node,
    settings::Settings,
    testing::{Server, mesh, settings, with_passcode},
};

const MAC: &str = "63C9BD98-0000-4000-8000-000000000000";

/// A node that runs its side of the local network.
struct RunningNode {
    node: Arc<Node>,
    address: SocketAddr,
    running: JoinHandle<()>,
    _server: Server,
}

async fn start_at(seed: u8, settings: Settings, listener: TcpListener) -> RunningNode {
    let server = Server::new();
    let address = listener.local_addr().unwrap();
    let node = mesh(seed, settings, &server).0;
    let running = tokio::spawn(run(Arc::clone(&node.lan), Some(listener)));
    RunningNode { node, address, running, _server: server }
}

async fn bound() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

async fn start(seed: u8, settings: Settings) -> RunningNode {
    start_at(seed, settings, bound().await).await
}

fn to(others: &[&RunningNode]) -> Settings {
    Settings { peers: others.iter().map(|other| other.address.to_string()).collect(), ..settings() }
}

impl RunningNode {
    fn id(&self) -> NodeId {
        self.node.machine.id()
    }

    /// Its link to another on the LAN.
    fn link(&self, peer: &PeerId) -> Option<Arc<Link>> {
        self.node.peers.get(peer)?.link_of(true).filter(|link| !link.is_closed())
    }

    fn link_to(&self, other: &RunningNode) -> Option<Arc<Link>> {
        self.link(&PeerId::Node(other.id()))
    }

    async fn is_linked_to(&self, other: &RunningNode) -> Arc<Link> {
        let is = async || self.link_to(other).is_some() && other.link_to(self).is_some();
        eventually("a link", DEADLINE, is).await;
        self.link_to(other).unwrap()
    }

    async fn stop(self) {
        self.node.machine.stop.cancel();
        within("the end of a node", self.running).await.unwrap();
        self.node.machine.tasks.close();
        within("the end of its links", self.node.machine.tasks.wait()).await;
    }
}

#[tokio::test]
async fn two_nodes_are_linked_sealed_and_say_goodbye() {
    for settings in [settings(), with_passcode("swift eagle")] {
        let one = start(1, settings.clone()).await;
        let peers = vec![one.address.to_string()];
        let other = start(2, Settings { peers, ..settings }).await;
        let link = other.is_linked_to(&one).await;
        assert!(link.sealed && link.warren && link.proved && link.opened_here);
        let beats = async || {
            let peer = one.node.peers.get(&PeerId::Node(other.id()));
            peer.is_some_and(|peer| peer.facts().beats && peer.facts().name == "box")
        };
        eventually("a heartbeat", DEADLINE, beats).await;
        one.stop().await;
        within("the end of the link", link.closed()).await;
        assert_eq!(link.why_closed().unwrap(), "its peer closed it: the node stops");
        other.stop().await;
    }
}

#[tokio::test]
async fn two_nodes_that_dial_each_other_keep_one_link_and_the_same() {
    let (near, far) = (bound().await, bound().await);
    let of = |listener: &TcpListener| Settings {
        peers: vec![listener.local_addr().unwrap().to_string()],
        ..settings()
    };
    let (to_far, to_near) = (of(&far), of(&near));
    let one = start_at(1, to_far, near).await;
    let other = start_at(2, to_near, far).await;
    let lower_opened = async || {
        let (Some(here), Some(there)) = (one.link_to(&other), other.link_to(&one)) else {
            return false;
        };
        here.opened_here == (one.id() < other.id()) && here.opened_here != there.opened_here
    };
    eventually("one link", DEADLINE, lower_opened).await;
    let (here, there) = (one.link_to(&other).unwrap(), other.link_to(&one).unwrap());
    here.tell(&protocol::mesh::ClusterMessage::Heartbeat(Box::new(
        one.node.machine.facts.heartbeat(),
    )))
    .unwrap();
    assert!(!here.is_closed() && !there.is_closed());
}

#[tokio::test]
async fn a_node_that_comes_back_is_linked_again() {
    let one = start(1, settings()).await;
    let other = start(2, to(&[&one])).await;
    let link = other.is_linked_to(&one).await;
    let address = one.address;
    one.stop().await;
    within("the end of the link", link.closed()).await;
    let one = start_at(1, settings(), TcpListener::bind(address).await.unwrap()).await;
    assert_ne!(other.is_linked_to(&one).await.number, link.number);
}

#[tokio::test]
async fn a_direct_link_leads_to_the_expected_node_only() {
    let (one, other) = (start(1, settings()).await, start(2, settings()).await);
    let link = dial_sealed(&one.node.lan, other.address, &other.id()).await.unwrap();
    assert!(link.sealed);
    let second = dial_sealed(&one.node.lan, other.address, &other.id()).await.unwrap();
    assert_eq!(second.number, link.number);
    let third = Identity::from_seed([3; 32]).node_id();
    let refused = dial_sealed(&one.node.lan, other.address, &third).await.unwrap_err();
    assert!(refused.0.contains("answers where"), "{refused}");
    let nobody = bound().await.local_addr().unwrap();
    assert!(dial_sealed(&one.node.lan, nobody, &third).await.is_err());
}

#[tokio::test]
async fn many_direct_links_at_once_become_one() {
    let (one, other) = (start(1, settings()).await, start(2, settings()).await);
    let dials = (0..8).map(|turn| {
        let (from, to) = if turn % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let (lan, address, id) = (Arc::clone(&from.node.lan), to.address, to.id());
        tokio::spawn(async move { dial_sealed(&lan, address, &id).await.is_ok() })
    });
    for dial in dials.collect::<Vec<_>>() {
        assert!(within("a link", dial).await.unwrap());
    }
    let link = one.is_linked_to(&other).await;
    let same = async || {
        let (Some(here), Some(there)) = (one.link_to(&other), other.link_to(&one)) else {
            return false;
        };
        here.opened_here != there.opened_here
            && here.order.dial == there.order.dial
            && one.node.lan.limits.open() == 1
            && other.node.lan.limits.open() == 1
    };
    eventually("one link", DEADLINE, same).await;
    assert!(link.sealed);
}

#[tokio::test]
async fn one_key_at_two_nodes_is_reported_and_a_node_that_finds_itself_is_not() {
    let listener = bound().await;
    let own = listener.local_addr().unwrap().to_string();
    let one = start_at(1, Settings { peers: vec![own], ..settings() }, listener).await;
    let other = start(2, to(&[&one])).await;
    other.is_linked_to(&one).await;
    assert!(one.node.machine.counts.problems().is_empty());
    assert_eq!(one.node.lan.unlinked.list(), [], "nor as a peer that has no link");
    let twin = start(1, to(&[&one])).await;
    let is_reported = async || {
        [&one, &twin].iter().all(|running| {
            running
                .node
                .machine
                .counts
                .problems()
                .keys()
                .any(|problem| problem.contains("the same key"))
        })
    };
    eventually("the problem", DEADLINE, is_reported).await;
    let is_repeated = async || one.node.machine.counts.problems().values().any(|times| *times > 1);
    eventually("the next try", DEADLINE, is_repeated).await;
    assert_eq!(one.node.machine.counts.problems().len(), 1, "each try comes from another port");
    assert!(one.link_to(&twin).is_none());
}

#[tokio::test]
async fn nodes_find_each_other_by_mdns() {
    let found = || Settings { advertise: true, ..settings() };
    let (one, other) = (start(61, found()).await, start(62, found()).await);
    let link = one.is_linked_to(&other).await;
    assert!(link.sealed);
    one.stop().await;
    other.stop().await;
}

/// A peer in the hands of a test, over TCP.
struct Stock {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Stock {
    async fn dial(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self { stream, buffer: BytesMut::new() }
    }

    async fn say(&mut self, payload: &str) {
        let mut frame = BytesMut::new();
        frame::put(&mut frame, payload.as_bytes());
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The next frame, or nothing when the connection is closed.
    async fn hear(&mut self) -> Option<Bytes> {
        let read = async {
            loop {
                if let Some(frame) = frame::take(&mut self.buffer, frame::MAX_FRAME).unwrap() {
                    return Some(frame);
                }
                if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                    return None;
                }
            }
        };
        within("a frame", read).await
    }

    async fn hears(&mut self) -> Value {
        serde_json::from_slice(&self.hear().await.unwrap()).unwrap()
    }

    /// Waits until the connection is closed, whatever is said before.
    async fn await_close(&mut self) {
        while self.hear().await.is_some() {}
    }
}

/// A hello, or its answer, as a stock peer writes it.
fn stock(kind: &str, hash: Option<&str>) -> String {
    let hardware = json!({"chipFamily": "m2Max", "chipName": "Apple M2 Max", "totalRAMGB": 64,
        "gpuCoreCount": 38, "memoryBandwidthGBs": 400, "tier": 1, "platform": "macOS"});
    let device = json!({"id": MAC, "name": "Anna's Mac", "hardware": hardware,
        "registeredAt": 816864029.93, "lastSeenAt": 816864029.93, "isCurrentDevice": true,
        "loadedModels": ["q"]});
    let mut hello = json!({"deviceInfo": device, "protocolVersion": 1, "loadedModels": ["q"]});
    if let Some(hash) = hash {
        hello["clusterPasscodeHash"] = json!(hash);
    }
    json!({ kind: {"_0": hello} }).to_string()
}

fn mac() -> PeerId {
    PeerId::Device(MAC.to_lowercase())
}

#[tokio::test]
async fn a_stock_peer_that_connects_gets_an_answer_and_heartbeats() {
    let one = start(1, settings()).await;
    let mut mac = Stock::dial(one.address).await;
    mac.say(&stock("hello", None)).await;
    let ack = mac.hears().await;
    let device = ack["helloAck"]["_0"]["deviceInfo"]["id"].as_str().unwrap().to_owned();
    assert_eq!(device, one.node.machine.facts.device_id().as_str());
    let beat = mac.hears().await;
    assert_eq!(beat["heartbeat"]["_0"]["deviceID"], json!(device));
    let link = one.link(&self::mac()).unwrap();
    assert!(!link.sealed && !link.warren);
    assert_eq!(one.node.peers.get(&self::mac()).unwrap().facts().name, "Anna's Mac");
    mac.say(r#"{"heartbeat":{"_0":{"deviceID":"x","thermalLevel":"odd","queueDepth":2}}}"#).await;
    let acked = mac.hears().await;
    assert_eq!(acked["heartbeatAck"]["_0"]["deviceID"], json!(device));
}

#[tokio::test]
async fn a_stock_listener_that_closes_is_sent_the_hash_only_when_that_is_allowed() {
    let hash = stock_hash("swift eagle").unwrap();
    for allowed in [false, true] {
        let listener = bound().await;
        let address = listener.local_addr().unwrap();
        let own = Settings { plain_passcode: allowed, ..with_passcode("swift eagle") };
        let one = start(1, own).await;
        let lan = Arc::clone(&one.node.lan);
        let call = Call { address: Some(address), ..Call::default() };
        let dialling = tokio::spawn(async move { open::dial(&lan, call).await });
        let accept = async || {
            let (stream, _) = listener.accept().await.unwrap();
            Stock { stream, buffer: BytesMut::new() }
        };
        let mut first = within("a connection", accept()).await;
        let hello = first.hears().await;
        assert_eq!(hello["hello"]["_0"].get("clusterPasscodeHash"), None, "{hello}");
        drop(first);
        if allowed {
            let mut second = within("a connection", accept()).await;
            assert_eq!(second.hears().await["hello"]["_0"]["clusterPasscodeHash"], json!(hash));
            second.say(&stock("helloAck", Some(&hash))).await;
            assert!(within("a link", dialling).await.unwrap().is_ok());
            assert!(one.link(&mac()).is_some());
        } else {
            let refused = within("a refusal", dialling).await.unwrap().unwrap_err();
            assert!(refused.to_string().contains("closed the connection on our hello"));
        }
    }
}

#[tokio::test]
async fn a_peer_with_another_protocol_gets_a_reason_and_is_dropped() {
    let one = start(1, settings()).await;
    let mut browser = Stock::dial(one.address).await;
    browser.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let refusal = browser.hears().await;
    assert!(refusal["linkClosed"]["reason"].as_str().unwrap().contains("bytes"), "{refusal}");
    browser.await_close().await;
    let mut hostile = Stock::dial(one.address).await;
    hostile.say(&stock("hello", None)).await;
    hostile.hears().await;
    hostile.stream.write_all(&[0xff; 8]).await.unwrap();
    hostile.await_close().await;
    eventually("the end of the link", DEADLINE, async || one.link(&mac()).is_none()).await;
    let mut next = Stock::dial(one.address).await;
    next.say(&stock("hello", None)).await;
    assert!(next.hears().await["helloAck"].is_object());
}

#[tokio::test]
async fn one_address_cannot_keep_others_from_saying_hello() {
    let one = start(1, settings()).await;
    let mut silent = Vec::new();
    let refused = loop {
        let mut another = Stock::dial(one.address).await;
        let ready = tokio::time::timeout(Duration::from_millis(200), another.hear()).await;
        match ready {
            Ok(bytes) => break bytes.unwrap(),
            Err(_) => silent.push(another),
        }
        assert!(silent.len() <= 8);
    };
    let refusal: Value = serde_json::from_slice(&refused).unwrap();
    assert!(refusal["linkClosed"]["reason"].as_str().unwrap().starts_with("8 connections"));
    silent.pop();
    let free = async || {
        let mut another = Stock::dial(one.address).await;
        another.say(&stock("hello", None)).await;
        another.hears().await["helloAck"].is_object()
    };
    eventually("a place", DEADLINE, free).await;
}

#[tokio::test]
async fn a_stock_peer_that_connects_anew_takes_the_place_of_its_old_link() {
    let one = start(1, settings()).await;
    let mut old = Stock::dial(one.address).await;
    old.say(&stock("hello", None)).await;
    assert!(old.hears().await["helloAck"].is_object());
    let mut new = Stock::dial(one.address).await;
    new.say(&stock("hello", None)).await;
    assert!(new.hears().await["helloAck"].is_object());
    old.await_close().await;
    assert!(one.link(&mac()).is_some());
}

#[tokio::test]
async fn every_two_of_five_nodes_are_linked() {
    let mut nodes: Vec<RunningNode> = Vec::new();
    for seed in 1..=5 {
        let to = to(&nodes.iter().collect::<Vec<_>>());
        nodes.push(start(seed, to).await);
    }
    for (place, one) in nodes.iter().enumerate() {
        for other in &nodes[..place] {
            one.is_linked_to(other).await;
        }
    }
    let numbers: BTreeSet<_> = nodes.iter().map(|node| node.node.peers.all().len()).collect();
    assert_eq!(numbers, BTreeSet::from([4]));
}
