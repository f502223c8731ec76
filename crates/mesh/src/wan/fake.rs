//! For tests: this machine without a node, which remembers what it was told.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use base::{NodeId, Secret};
use bytes::Bytes;
use protocol::mesh::{
    AppleTime, Capabilities, WarrenNode,
    cluster::{ClusterMessage, Heartbeat, Hello, decode},
};
use seal::{Identity, PasscodeKey};
use serde_json::json;

use super::home::Home;
use crate::{link::Link, peer::PeerId};

/// An event of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeEvent {
    Listed(NodeId, String),
    Unlisted(NodeId),
    Opened { peer: NodeId, sealed: bool, proved: bool, hello: Option<String> },
    Closed(NodeId, String),
    Received(NodeId, String),
    Degraded(NodeId, bool),
    Bad(String),
}

/// A machine.
pub(super) struct FakeHome {
    pub(super) identity: Identity,
    pub(super) psk: Option<PasscodeKey>,
    pub(super) trusted: Vec<NodeId>,
    pub(super) require_sealed: bool,
    pub(super) near: AtomicBool,
    pub(super) models: Mutex<Vec<String>>,
    /// Whether it answers each message with the same.
    pub(super) echoes: bool,
    pub(super) told: Mutex<Vec<NodeEvent>>,
    pub(super) links: Mutex<Vec<Arc<Link>>>,
}

impl FakeHome {
    pub(super) fn new(seed: u8) -> Self {
        Self {
            identity: Identity::from_seed([seed; 32]),
            psk: None,
            trusted: Vec::new(),
            require_sealed: false,
            near: AtomicBool::new(false),
            models: Mutex::new(vec![format!("model-{seed}")]),
            echoes: false,
            told: Mutex::default(),
            links: Mutex::default(),
        }
    }

    pub(super) fn with_passcode(seed: u8, passcode: &str) -> Self {
        let psk = Some(PasscodeKey::derive(&Secret::from(passcode)));
        Self { psk, ..Self::new(seed) }
    }

    pub(super) fn id(&self) -> NodeId {
        self.identity.node_id()
    }

    /// As a relay lists it.
    pub(super) fn warren(&self) -> WarrenNode {
        WarrenNode { mesh: 2, version: "0".to_owned(), psk: self.psk.is_some() }
    }

    pub(super) fn told(&self) -> Vec<NodeEvent> {
        self.told.lock().unwrap().clone()
    }

    /// How often something was counted as bad.
    pub(super) fn bad(&self, what: &str) -> usize {
        let is = |told: &&NodeEvent| matches!(told, NodeEvent::Bad(bad) if bad.contains(what));
        self.told().iter().filter(is).count()
    }

    /// The messages that came over links.
    pub(super) fn received(&self) -> Vec<String> {
        let text = |told| match told {
            NodeEvent::Received(_, text) => Some(text),
            _ => None,
        };
        self.told().into_iter().filter_map(text).collect()
    }

    /// The newest link.
    pub(super) fn link(&self) -> Option<Arc<Link>> {
        self.links.lock().unwrap().last().cloned()
    }

    fn note(&self, told: NodeEvent) {
        self.told.lock().unwrap().push(told);
    }
}

fn node(link: &Link) -> NodeId {
    match &link.peer {
        PeerId::Node(node) => *node,
        PeerId::Device(_) => panic!("a device at a relay"),
    }
}

impl Home for FakeHome {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn psk(&self) -> Option<&PasscodeKey> {
        self.psk.as_ref()
    }

    fn trusts(&self, node: &NodeId) -> bool {
        self.trusted.contains(node)
    }

    fn requires_sealed(&self) -> bool {
        self.require_sealed
    }

    fn name(&self) -> String {
        format!("node {}", self.id().short())
    }

    fn hello(&self) -> Hello {
        let hello = json!({"hello": {
            "deviceInfo": {"name": self.name()},
            "loadedModels": *self.models.lock().unwrap(),
            "warren": {"nodeID": self.id(), "version": "0", "psk": self.psk.is_some()},
        }});
        match decode(hello.to_string().as_bytes()).unwrap().message {
            ClusterMessage::Hello(hello) => *hello,
            other => panic!("{other:?}"),
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        let beat = json!({"heartbeat": {"timestamp": AppleTime(1.0)}});
        match decode(beat.to_string().as_bytes()).unwrap().message {
            ClusterMessage::Heartbeat(beat) => *beat,
            other => panic!("{other:?}"),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let told = json!({
            "loadedModels": *self.models.lock().unwrap(), "isAvailable": true, "warren": self.warren(),
        });
        serde_json::from_value(told).unwrap()
    }

    fn listed(&self, _: &Arc<str>, peer: &NodeId, name: &str, _: &Capabilities) {
        self.note(NodeEvent::Listed(*peer, name.to_owned()));
    }

    fn unlisted(&self, _: &Arc<str>, peer: &NodeId) {
        self.note(NodeEvent::Unlisted(*peer));
    }

    fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>) {
        let hello = hello.map(|hello| hello.device_info.name.clone());
        let (sealed, proved) = (link.sealed, link.proved);
        self.note(NodeEvent::Opened { peer: node(link), sealed, proved, hello });
        self.links.lock().unwrap().push(Arc::clone(link));
    }

    fn told(&self, _: &Link, _: &Hello) {}

    fn closed(&self, link: &Arc<Link>, why: &str) {
        link.close(why);
        self.note(NodeEvent::Closed(node(link), why.to_owned()));
    }

    fn received(&self, link: &Arc<Link>, payload: Bytes) {
        let text = String::from_utf8_lossy(&payload).into_owned();
        if text.starts_with("{\"heartbeat\"") {
            let beat = ClusterMessage::HeartbeatAck(Box::new(self.heartbeat()));
            // A link that is closed has nobody to hear it.
            let _ = link.tell(&beat);
        } else if self.echoes {
            // A link that is closed has nobody to hear the echo.
            let _ = link.tell(&decode(&payload).unwrap().message);
        }
        self.note(NodeEvent::Received(node(link), text));
    }

    fn degraded(&self, link: &Arc<Link>, is: bool) {
        link.set_degraded(is);
        self.note(NodeEvent::Degraded(node(link), is));
    }

    fn is_near(&self, _: &NodeId) -> bool {
        self.near.load(Ordering::Relaxed)
    }

    fn bad(&self, what: &str) {
        self.note(NodeEvent::Bad(what.to_owned()));
    }
}
