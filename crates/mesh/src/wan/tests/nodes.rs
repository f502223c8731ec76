//! Whole nodes at relays, over TCP on this machine.

use std::sync::{Arc, Mutex};

use base::NodeId;
use bytes::Bytes;
use seal::Identity;
use testkit::{DEADLINE, eventually, within};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::RunningRelay;
use crate::{
    link::{Carrier, Link, NoLink},
    node::{Mesh, Node},
    parcels::{MOST, NotSent, Receiver},
    peer::{Peer, PeerId},
    settings::Settings,
    share::{Share, Sharing},
    testing::{Server, mesh, ok, rest, settings},
};

/// A node that runs.
struct RunningNode {
    node: Arc<Node>,
    server: Server,
    stop: CancellationToken,
    task: JoinHandle<()>,
    _data: tempfile::TempDir,
}

impl RunningNode {
    /// At these relays; with a listener on the local network, or without.
    async fn at(seed: u8, relays: &[&RunningRelay], listens: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let data = tempfile::tempdir().unwrap();
        let settings = Settings {
            name: format!("box {seed}"),
            listen: listens.then(|| listener.local_addr().unwrap()),
            relays: relays.iter().map(|relay| format!("ws://{}", relay.address)).collect(),
            share: Share { with: Sharing::Peers, ..Share::default() },
            data_dir: data.path().to_owned(),
            ..settings()
        };
        let server = Server::new();
        let mesh = mesh(seed, settings, &server);
        let (node, stop) = (Arc::clone(&mesh.0), CancellationToken::new());
        let task = tokio::spawn(mesh.run(stop.clone(), listens.then_some(listener)));
        Self { node, server, stop, task, _data: data }
    }

    fn id(&self) -> NodeId {
        self.node.machine.id()
    }

    fn peer(&self, other: &Self) -> Option<Arc<Peer>> {
        self.node.peers.get(&PeerId::Node(other.id()))
    }

    async fn finds(&self, other: &Self, relays: usize) -> Arc<Peer> {
        let listed = async || self.peer(other).is_some_and(|peer| peer.relays().len() == relays);
        eventually("a peer at all relays", DEADLINE, listed).await;
        self.peer(other).unwrap()
    }

    async fn reaches(&self, peer: &Arc<Peer>) -> Result<Arc<Link>, NoLink> {
        within("a link", self.node.wan.reach(peer)).await
    }

    async fn stops(self) {
        self.stop.cancel();
        within("the end of a node", self.task).await.unwrap();
    }
}

fn host(link: &Link) -> &str {
    match &link.carrier {
        Carrier::Relay(host) => host,
        Carrier::Lan(address) => panic!("on the LAN: {address}"),
    }
}

#[tokio::test]
async fn a_request_is_answered_by_a_peer_behind_a_relay() {
    let relay = RunningRelay::anywhere().await;
    let mut one = RunningNode::at(1, &[&relay], false).await;
    let mut other = RunningNode::at(2, &[&relay], false).await;
    let mut lent = other.server.lend(&["m"], 1);
    let mut answer = one.server.ask(true);
    let assigned = lent.assigned().await;
    let body = String::from_utf8_lossy(&assigned.request.body).into_owned();
    assert!(body.contains("\"top_k\":4"), "{body}");
    let mut writer = assigned.answer;
    writer.head(ok()).unwrap();
    let chunk = r#"{"choices":[{"delta":{"content":"grüße"},"index":0}]}"#;
    writer.chunk(format!("data: {chunk}\n\ndata: [DONE]\n\n").into()).unwrap();
    writer.end();
    let (text, ended_well) = rest(&mut answer).await;
    assert!(ended_well && text.contains("grüße"), "{text}");
    one.stops().await;
    other.stops().await;
}

#[tokio::test]
async fn peers_that_can_reach_each_other_leave_the_relay() {
    let relay = RunningRelay::anywhere().await;
    let one = RunningNode::at(1, &[&relay], true).await;
    let other = RunningNode::at(2, &[&relay], true).await;
    let addresses = async || {
        let has_addresses = |node: &Node| {
            node.machine.facts.hello(true).warren.is_some_and(|it| !it.addresses.is_empty())
        };
        has_addresses(&one.node) && has_addresses(&other.node)
    };
    eventually("addresses", DEADLINE, addresses).await;
    let peer = one.finds(&other, 1).await;
    let link = one.reaches(&peer).await.unwrap();
    assert!(link.sealed);
    let direct = async || peer.link_of(true).is_some_and(|link| link.is_usable());
    eventually("a direct link", DEADLINE, direct).await;
    let link = peer.link().unwrap();
    assert!(link.sealed && matches!(link.carrier, Carrier::Lan(_)));
    one.stops().await;
    other.stops().await;
}

#[tokio::test]
async fn a_peer_at_two_relays_is_reached_when_one_of_them_dies() {
    let (first, second) = (RunningRelay::anywhere().await, RunningRelay::anywhere().await);
    let one = RunningNode::at(1, &[&first, &second], false).await;
    let other = RunningNode::at(2, &[&first, &second], false).await;
    let peer = one.finds(&other, 2).await;
    let link = one.reaches(&peer).await.unwrap();
    let used_first = host(&link) == first.address.to_string();
    let (dies, stays) = if used_first { (first, second) } else { (second, first) };
    dies.killed().await;
    within("the end of the link", link.closed()).await;
    let next = one.reaches(&peer).await.unwrap();
    assert_eq!(host(&next), stays.address.to_string());
    one.stops().await;
    other.stops().await;
}

#[tokio::test]
async fn many_that_want_the_same_peer_wait_for_one_link() {
    let relay = RunningRelay::anywhere().await;
    let one = RunningNode::at(1, &[&relay], false).await;
    let other = RunningNode::at(2, &[&relay], false).await;
    let peer = one.finds(&other, 1).await;
    let reached = futures_util::future::join_all((0..50).map(|_| one.reaches(&peer))).await;
    let mut numbers: Vec<u64> = reached.into_iter().map(|link| link.unwrap().number).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), 1);
    one.stops().await;
    other.stops().await;
}

#[tokio::test]
async fn a_peer_that_no_relay_lists_is_not_reached() {
    let relay = RunningRelay::anywhere().await;
    let one = RunningNode::at(1, &[&relay, &relay], false).await;
    let registered = async || one.node.wan.status().iter().any(|status| status.registered);
    eventually("a registration", DEADLINE, registered).await;
    // The same relay twice is one: the node would throw itself out.
    assert_eq!(one.node.wan.status().len(), 1);
    let stranger = one.node.peers.meet(&PeerId::Node(NodeId::new([9; 32]))).unwrap();
    let why = one.reaches(&stranger).await.unwrap_err();
    assert!(why.0.contains("no relay lists it"), "{why}");
    let device = one.node.peers.meet(&PeerId::Device("uuid".to_owned())).unwrap();
    assert!(one.reaches(&device).await.is_err());
    one.stops().await;
}

/// The messages that came from peers, and the peers whose links have ended.
#[derive(Default)]
struct Kept {
    came: Mutex<Vec<(NodeId, Bytes)>>,
    lost: Mutex<Vec<NodeId>>,
}

impl Receiver for Kept {
    fn received(&self, from: NodeId, bytes: Bytes) {
        self.came.lock().unwrap().push((from, bytes));
    }

    fn lost(&self, peer: NodeId) {
        self.lost.lock().unwrap().push(peer);
    }
}

impl Kept {
    fn of(node: &RunningNode) -> Arc<Self> {
        let kept = Arc::<Self>::default();
        let receiver = Arc::downgrade(&kept);
        Mesh(Arc::clone(&node.node)).set_receiver(receiver);
        kept
    }
}

#[tokio::test]
async fn parcels_go_both_ways_in_order_behind_a_relay_and_a_lost_link_is_reported() {
    let relay = RunningRelay::anywhere().await;
    let one = RunningNode::at(1, &[&relay], false).await;
    let other = RunningNode::at(2, &[&relay], false).await;
    let (here, there) = (Kept::of(&one), Kept::of(&other));
    let mesh = [&one, &other].map(|node| Mesh(Arc::clone(&node.node)));
    let unknown = Identity::from_seed([9; 32]).node_id();
    assert!(!mesh[0].knows(unknown));
    assert_eq!(mesh[0].send(unknown, b"x").await, Err(NotSent::Unknown));
    one.finds(&other, 1).await;
    assert_eq!(mesh[0].send(other.id(), &[0; MOST + 1]).await, Err(NotSent::TooLong));
    let sent: Vec<Vec<u8>> = (0..20).map(|number| vec![number; MOST]).collect();
    for bytes in &sent {
        within("room", mesh[0].send(other.id(), bytes)).await.unwrap();
    }
    let came = async || there.came.lock().unwrap().len() == sent.len();
    eventually("all parcels", DEADLINE, came).await;
    for (came, sent) in there.came.lock().unwrap().iter().zip(&sent) {
        assert!(came.0 == one.id() && came.1 == sent, "in order, and from whom they are");
    }
    within("room", mesh[1].send(one.id(), b"back")).await.unwrap();
    let back = (other.id(), Bytes::from_static(b"back"));
    let came = async || here.came.lock().unwrap().first() == Some(&back);
    eventually("the answer", DEADLINE, came).await;
    let gone = other.id();
    other.stops().await;
    let is_told = async || here.lost.lock().unwrap().contains(&gone);
    eventually("a lost link", DEADLINE, is_told).await;
    one.stops().await;
}
