//! What relays are told of this machine, and what this machine is told by them.

use std::sync::Arc;

use base::NodeId;
use bytes::Bytes;
use protocol::mesh::{
    Capabilities,
    cluster::{Heartbeat, Hello},
};
use seal::{Identity, PasscodeKey};

use super::direct;
use crate::{link::Link, node::Node, peer::PeerId};

/// This machine, as what runs for relays sees it.
pub(super) trait Home: Send + Sync {
    /// Its identity.
    fn identity(&self) -> &Identity;
    /// Made of the passcode, if there is one.
    fn psk(&self) -> Option<&PasscodeKey>;
    /// Whether a node need not prove the passcode.
    fn trusts(&self, node: &NodeId) -> bool;
    /// Whether only sealed links are taken.
    fn requires_sealed(&self) -> bool;
    /// Its name, for people.
    fn name(&self) -> String;
    /// Its hello over sealed links.
    fn hello(&self) -> Hello;
    /// How it is doing.
    fn heartbeat(&self) -> Heartbeat;
    /// What it offers.
    fn capabilities(&self) -> Capabilities;
    /// A relay lists a peer.
    fn listed(&self, relay: &Arc<str>, peer: &NodeId, name: &str, capabilities: &Capabilities);
    /// A relay lists a peer no longer.
    fn unlisted(&self, relay: &Arc<str>, peer: &NodeId);
    /// A link was greeted.
    fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>);
    /// The other end of a link has told where else it can be reached.
    fn told(&self, link: &Link, hello: &Hello);
    /// A link has ended.
    fn closed(&self, link: &Arc<Link>, why: &str);
    /// A payload came over a link.
    fn received(&self, link: &Arc<Link>, payload: Bytes);
    /// Nothing was heard over a link for too long, or something was again.
    fn degraded(&self, link: &Arc<Link>, is: bool);
    /// Whether a peer can be asked over a link on the local network.
    fn is_near(&self, peer: &NodeId) -> bool;
    /// Something was not understood.
    fn bad(&self, what: &str);
}

impl Home for Arc<Node> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn psk(&self) -> Option<&PasscodeKey> {
        self.psk.as_ref()
    }

    fn trusts(&self, node: &NodeId) -> bool {
        self.settings.trusted.contains(node)
    }

    fn requires_sealed(&self) -> bool {
        self.settings.require_sealed
    }

    fn name(&self) -> String {
        self.settings.name.clone()
    }

    fn hello(&self) -> Hello {
        self.facts.hello(true)
    }

    fn heartbeat(&self) -> Heartbeat {
        self.facts.heartbeat()
    }

    fn capabilities(&self) -> Capabilities {
        self.facts.capabilities()
    }

    fn listed(&self, relay: &Arc<str>, peer: &NodeId, name: &str, capabilities: &Capabilities) {
        let Some(peer) = self.peers.meet(&PeerId::Node(*peer)) else {
            return self.counts.bad("a peer too many on a relay's list");
        };
        peer.learn(|facts| facts.listed(name, capabilities));
        peer.listed(relay, true);
        self.refresh(&peer);
    }

    fn unlisted(&self, relay: &Arc<str>, peer: &NodeId) {
        let id = PeerId::Node(*peer);
        let Some(peer) = self.peers.get(&id) else { return };
        peer.listed(relay, false);
        self.refresh(&peer);
        self.peers.forget(&id);
    }

    fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>) {
        Node::opened(self, link, hello);
    }

    fn told(&self, link: &Link, hello: &Hello) {
        let (Some(warren), Some(peer)) = (&hello.warren, link.peer.node()) else { return };
        let own = self.settings.listen.map(|address| address.ip());
        self.relays.memory.reachable_at(peer, direct::usable(&warren.addresses, own));
        if link.proved && !warren.addresses.is_empty() {
            direct::begin(self, *peer, link.opened_here);
        }
    }

    fn closed(&self, link: &Arc<Link>, why: &str) {
        Node::closed(self, link, why);
    }

    fn received(&self, link: &Arc<Link>, payload: Bytes) {
        Node::received(self, link, payload);
    }

    fn degraded(&self, link: &Arc<Link>, is: bool) {
        link.set_degraded(is);
        if let Some(peer) = self.peers.get(&link.peer) {
            self.refresh(&peer);
        }
    }

    fn is_near(&self, peer: &NodeId) -> bool {
        is_near(self, peer)
    }

    fn bad(&self, what: &str) {
        self.counts.bad(what);
    }
}

/// Whether a peer can be asked over a link on the local network.
pub(super) fn is_near(node: &Node, peer: &NodeId) -> bool {
    let peer = node.peers.get(&PeerId::Node(*peer));
    peer.and_then(|peer| peer.link_of(true)).is_some_and(|link| link.is_usable())
}
