//! Machines at relays, over pipes in memory: no clock but the test's.

use std::{future::pending, sync::Arc};

use base::NodeId;
use mesh_relay::{InMemory, MeshRelay, Settings};
use protocol::mesh::relay::{ForwardKind, forward::relay_data, forward::relay_session};
use serde_json::Value;
use testkit::{DEADLINE, eventually, within};
use tokio::{
    io::duplex,
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use wire::{Frame, Link as Socket, Outbox, Role};

use crate::{
    link::{Link, NoLink},
    wan::{
        connection::{Ask, Connection, ConnectionEnd, Parts},
        fake::{FakeNode, NodeEvent},
        memory::Memory,
        registration::Registration,
        relay::LiveStatus,
        sort::Sort,
    },
};

const PIPE: usize = 64 * 1024;

/// The name by which the relay is dialled.
pub(super) const HOST: &str = "relay.test";

pub(super) fn relay() -> MeshRelay {
    MeshRelay::new(Settings::default(), Box::new(InMemory::default()))
}

/// A machine with a connection to a relay.
pub(super) struct Machine {
    pub(super) node: Arc<FakeNode>,
    memory: Arc<Memory>,
    pub(super) status: Arc<LiveStatus>,
    asks: mpsc::Sender<Ask>,
    pub(super) stop: CancellationToken,
    pub(super) ended: JoinHandle<ConnectionEnd>,
}

impl Machine {
    /// At a Warren's relay.
    pub(super) fn at(relay: &MeshRelay, node: FakeNode) -> Self {
        Self::known_at(relay, Arc::new(node))
    }

    pub(super) fn known_at(relay: &MeshRelay, node: Arc<FakeNode>) -> Self {
        let (here, there) = duplex(PIPE);
        let (link, outbox) = Socket::new(Box::pin(there), Role::Server);
        let relay = relay.clone();
        tokio::spawn(async move { relay.serve(link, outbox, Some(HOST.to_owned())).await });
        let (link, outbox) = Socket::new(Box::pin(here), Role::Client);
        Self::over(node, link, outbox, Sort::Warren)
    }

    /// At a stock relay in the hands of the test.
    pub(super) fn at_stock(node: FakeNode) -> (Self, StockRelay) {
        Self::at_some(node, Sort::Stock)
    }

    /// The same, taken for a relay of this sort.
    pub(super) fn at_some(node: FakeNode, sort: Sort) -> (Self, StockRelay) {
        let (here, there) = duplex(PIPE);
        let (link, outbox) = Socket::new(Box::pin(here), Role::Client);
        let node = Arc::new(node);
        let machine = Self::over(Arc::clone(&node), link, outbox, sort);
        let (link, outbox) = Socket::new(Box::pin(there), Role::Server);
        (machine, StockRelay::new(link, outbox, node.id()))
    }

    fn over(node: Arc<FakeNode>, link: Socket, outbox: Outbox, sort: Sort) -> Self {
        let how = Registration::new(sort, HOST.to_owned());
        let memory: Arc<Memory> = Arc::default();
        let status = Arc::new(LiveStatus::new(HOST.to_owned(), HOST.into()));
        let stop = node.machine.stop.clone();
        let (asks, mut questions) = mpsc::channel(16);
        let parts = Parts {
            machine: Arc::clone(&node.machine),
            peers: Arc::clone(&node.peers),
            events: Arc::<FakeNode>::clone(&node),
            memory: Arc::clone(&memory),
            relay: HOST.into(),
            status: Arc::clone(&status),
        };
        let ended = tokio::spawn(async move {
            Connection::run(&parts, link, outbox, how, &mut questions).await
        });
        Self { node, memory, status, asks, stop, ended }
    }

    pub(super) fn id(&self) -> NodeId {
        self.node.id()
    }

    /// The sort that it remembers its relay to have.
    pub(super) fn remembers(&self) -> Option<Sort> {
        self.memory.relay(HOST)
    }

    /// Asks for a link, and does not wait for it.
    pub(super) async fn wants(&self, peer: NodeId) -> oneshot::Receiver<Result<Arc<Link>, NoLink>> {
        let (answer, answered) = oneshot::channel();
        assert!(self.asks.send(Ask { peer, answer }).await.is_ok());
        answered
    }

    pub(super) async fn link(&self, peer: NodeId) -> Result<Arc<Link>, NoLink> {
        let answered = self.wants(peer).await;
        within("an answer", answered).await.unwrap()
    }

    /// Waits until it was told something.
    #[track_caller]
    pub(super) fn hears(
        &self,
        what: &str,
        is: impl Fn(&NodeEvent) -> bool,
    ) -> impl Future<Output = ()> {
        let node = Arc::clone(&self.node);
        eventually(what, DEADLINE, move || {
            let heard = node.events().iter().any(&is);
            async move { heard }
        })
    }

    #[track_caller]
    pub(super) fn lists(&self, peer: NodeId) -> impl Future<Output = ()> {
        self.hears(
            "a peer listed",
            move |event| matches!(event, NodeEvent::Listed(id, _) if *id == peer),
        )
    }

    #[track_caller]
    pub(super) fn loses(&self, peer: NodeId) -> impl Future<Output = ()> {
        self.hears(
            "a link closed",
            move |event| matches!(event, NodeEvent::Closed(id, _) if *id == peer),
        )
    }

    /// Why links have closed.
    pub(super) fn closed(&self) -> Vec<String> {
        let why = |event| match event {
            NodeEvent::Closed(_, why) => Some(why),
            _ => None,
        };
        self.node.events().into_iter().filter_map(why).collect()
    }

    /// How many links have opened.
    pub(super) fn opened(&self) -> usize {
        self.node.events().iter().filter(|event| matches!(event, NodeEvent::Opened { .. })).count()
    }
}

/// Two machines that list each other, at one relay.
pub(super) async fn two(relay: &MeshRelay) -> (Machine, Machine) {
    let one = Machine::at(relay, FakeNode::new(1));
    let other = Machine::at(relay, FakeNode::new(2));
    one.lists(other.id()).await;
    other.lists(one.id()).await;
    (one, other)
}

/// A stock relay, whose every frame the test writes.
pub(super) struct StockRelay {
    pub(super) outbox: Outbox,
    node: NodeId,
    frames: mpsc::Receiver<Frame>,
    orders: mpsc::Sender<Order>,
}

enum Order {
    /// Reads and writes nothing any more.
    Freeze,
    Close(u16, String),
}

impl StockRelay {
    fn new(link: Socket, outbox: Outbox, node: NodeId) -> Self {
        let (heard, frames) = mpsc::channel(1_000);
        let (orders, queue) = mpsc::channel(1);
        tokio::spawn(serve(link, heard, queue));
        Self { outbox, node, frames, orders }
    }

    /// The next frame of the node.
    pub(super) async fn heard(&mut self) -> Value {
        let frame = timeout(20 * DEADLINE, self.frames.recv()).await;
        match frame.expect("a frame") {
            Some(Frame::Text(text)) => serde_json::from_str(text.as_str()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The next frame of this name; others are passed over.
    pub(super) async fn heard_of(&mut self, name: &str) -> Value {
        loop {
            let frame = self.heard().await;
            if let Some(payload) = frame.get(name) {
                return payload.clone();
            }
        }
    }

    /// Whether the node has left without a word.
    pub(super) async fn heard_nothing(&mut self) -> bool {
        within("the end of a connection", self.frames.recv()).await.is_none()
    }

    pub(super) fn says(&self, text: impl Into<String>) {
        self.outbox.push(text.into()).unwrap();
    }

    /// Registers the node, and lists these peers, each with its capabilities.
    pub(super) async fn registers(&mut self, peers: &[(NodeId, Value)]) {
        self.heard_of("register").await;
        self.acknowledges();
        self.heard_of("discover").await;
        self.lists(peers);
    }

    pub(super) fn acknowledges(&self) {
        let node = self.node;
        self.says(format!(
            r#"{{"registerAck":{{"nodeID":"{node}","registeredAt":816863163.4879999,"ttlSeconds":300}}}}"#
        ));
    }

    pub(super) fn lists(&self, peers: &[(NodeId, Value)]) {
        let peers: Vec<Value> = peers
            .iter()
            .map(|(node, capabilities)| {
                serde_json::json!({
                    "nodeID": node, "publicKey": node, "wgPublicKey": null, "displayName": "stock",
                    "capabilities": capabilities, "lastSeen": 816_863_452.994, "natType": "unknown", "endpoints": [],
                })
            })
            .collect();
        self.says(serde_json::json!({"discoverResponse": {"peers": peers}}).to_string());
    }

    pub(super) fn forwards(&self, kind: ForwardKind, from: &NodeId, session: &str) {
        self.says(relay_session(kind, &from.to_string(), &self.node.to_string(), session));
    }

    pub(super) fn forwards_data(&self, from: &NodeId, session: &str, data: &[u8]) {
        self.says(relay_data(&from.to_string(), &self.node.to_string(), session, data));
    }

    pub(super) async fn freezes(&self) {
        self.orders.send(Order::Freeze).await.ok().unwrap();
    }

    pub(super) async fn closes(&self, code: u16, reason: &str) {
        self.orders.send(Order::Close(code, reason.to_owned())).await.ok().unwrap();
    }
}

async fn serve(mut link: Socket, heard: mpsc::Sender<Frame>, mut orders: mpsc::Receiver<Order>) {
    loop {
        tokio::select! {
            frame = link.next() => match frame {
                Ok(Some(frame)) => heard.try_send(frame).unwrap(),
                _ => return,
            },
            order = orders.recv() => match order {
                Some(Order::Freeze) => pending().await,
                Some(Order::Close(code, reason)) => return link.close(code, &reason).await,
                None => return,
            },
        }
    }
}

/// The bytes of a `relayData`.
pub(super) fn bytes_of(payload: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let data = payload["data"].as_str().unwrap();
    base64::engine::general_purpose::STANDARD.decode(data).unwrap()
}
