//! For tests: a machine without a node, which notes what happens on its links.

use std::sync::{Arc, Mutex, Weak};

use base::NodeId;
use bytes::Bytes;
use protocol::mesh::cluster::{ClusterMessage, Hello, decode};

use super::{Wan, relay::Relay};
use crate::{
    lan::Lan,
    link::{Link, LinkEvents},
    peer::{Peer, PeerId, Peers},
    settings::Settings,
    share::{Share, Sharing},
    testing::{Lent, Server, machine, settings},
    this_machine::ThisMachine,
};

/// An event at a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeEvent {
    Listed(NodeId, String),
    Unlisted(NodeId),
    Opened { peer: NodeId, sealed: bool, proved: bool, hello: Option<String> },
    Closed(NodeId, String),
    Received(NodeId, String),
}

/// A machine that serves one model, to all peers.
pub(super) struct FakeNode {
    pub(super) machine: Arc<ThisMachine>,
    pub(super) peers: Arc<Peers>,
    /// Whether it answers each message with the same.
    pub(super) echoes: bool,
    events: Mutex<Vec<NodeEvent>>,
    links: Mutex<Vec<Arc<Link>>>,
    server: Mutex<(Server, Lent)>,
}

impl FakeNode {
    /// It serves `model-{seed}`.
    pub(super) fn new(seed: u8) -> Self {
        Self::of(seed, settings())
    }

    pub(super) fn of(seed: u8, settings: Settings) -> Self {
        let mut server = Server::still();
        let lent = server.lend(&[&format!("model-{seed}")], 1);
        let share = Share { with: Sharing::Peers, ..Share::default() };
        let settings = Settings { name: format!("node {seed}"), share, ..settings };
        Self {
            machine: machine(seed, settings, server.scheduler.clone()),
            peers: Arc::default(),
            echoes: false,
            events: Mutex::default(),
            links: Mutex::default(),
            server: Mutex::new((server, lent)),
        }
    }

    pub(super) fn id(&self) -> NodeId {
        self.machine.id()
    }

    /// It serves this model from now on, and no other.
    pub(super) fn serves(&self, model: &str) {
        let (server, lent) = &mut *self.server.lock().unwrap();
        *lent = server.lend(&[model], 1);
    }

    pub(super) fn events(&self) -> Vec<NodeEvent> {
        self.events.lock().unwrap().clone()
    }

    /// How often something was counted as bad.
    pub(super) fn bad(&self, what: &str) -> u64 {
        let counts = self.machine.counts.bad_by_kind();
        counts.iter().filter(|(kind, _)| kind.contains(what)).map(|(_, count)| count).sum()
    }

    /// The messages that came over links.
    pub(super) fn received(&self) -> Vec<String> {
        let text = |event| match event {
            NodeEvent::Received(_, text) => Some(text),
            _ => None,
        };
        self.events().into_iter().filter_map(text).collect()
    }

    /// The newest link.
    pub(super) fn link(&self) -> Option<Arc<Link>> {
        self.links.lock().unwrap().last().cloned()
    }

    fn note(&self, event: NodeEvent) {
        self.events.lock().unwrap().push(event);
    }
}

fn node(peer: &PeerId) -> NodeId {
    match peer {
        PeerId::Node(node) => *node,
        PeerId::Device(_) => panic!("a device at a relay"),
    }
}

impl LinkEvents for FakeNode {
    fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>) {
        let hello = hello.map(|hello| hello.device_info.name.clone());
        let (sealed, proved) = (link.sealed, link.proved);
        self.note(NodeEvent::Opened { peer: node(&link.peer), sealed, proved, hello });
        self.links.lock().unwrap().push(Arc::clone(link));
    }

    fn closed(&self, link: &Arc<Link>, why: &str) {
        link.close(why);
        self.note(NodeEvent::Closed(node(&link.peer), why.to_owned()));
    }

    fn received(&self, link: &Arc<Link>, payload: Bytes) {
        let text = String::from_utf8_lossy(&payload).into_owned();
        if text.starts_with("{\"heartbeat\"") {
            let beat = ClusterMessage::HeartbeatAck(Box::new(self.machine.facts.heartbeat()));
            // A link that is closed has nobody to hear it.
            let _ = link.tell(&beat);
        } else if self.echoes {
            // A link that is closed has nobody to hear the echo.
            let _ = link.tell(&decode(&payload).unwrap().message);
        }
        self.note(NodeEvent::Received(node(&link.peer), text));
    }

    fn changed(&self, peer: &Arc<Peer>) {
        self.note(match peer.relays().is_empty() {
            true => NodeEvent::Unlisted(node(&peer.id)),
            false => NodeEvent::Listed(node(&peer.id), peer.facts().name),
        });
    }
}

impl Wan {
    /// A machine at no relay, whose links concern nobody.
    pub(crate) fn alone(machine: &Arc<ThisMachine>, peers: &Arc<Peers>) -> Arc<Self> {
        let nobody = Weak::<FakeNode>::new;
        let lan = Arc::new(Lan::new(Arc::clone(machine), Arc::clone(peers), nobody()));
        Arc::new(Self::new(Arc::clone(machine), Arc::clone(peers), lan, nobody()))
    }

    /// Registers it at a relay of this host, whose answer to the first request for a link is this one.
    pub(crate) fn is_given(&self, host: &str, link: Arc<Link>) {
        let (relay, mut asks) = Relay::new(&format!("ws://{host}").parse().unwrap());
        relay.status.set(|status| status.registered = true);
        self.relays().push(Arc::new(relay));
        tokio::spawn(async move {
            let ask = asks.recv().await.unwrap();
            assert!(ask.answer.send(Ok(link)).is_ok());
        });
    }
}
