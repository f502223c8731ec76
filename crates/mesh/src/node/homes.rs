//! The node as each of its parts sees it: every part names what it needs in a trait of its own.

use std::{net::SocketAddr, sync::Arc};

use base::NodeId;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use protocol::mesh::{
    Capabilities,
    cluster::{Heartbeat, Hello},
};
use seal::{Identity, PasscodeKey};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Node;
use crate::{
    lan::{self, Lan},
    link::{Link, NoLink},
    own::Own,
    peer::{Peer, PeerId, Peers},
    provider,
    share::Doing,
    transfer, wan,
};

impl Node {
    pub(crate) fn transfer_home(self: &Arc<Self>) -> Arc<dyn transfer::Home> {
        Arc::new(Arc::clone(self))
    }

    pub(crate) fn reach_home(self: &Arc<Self>) -> Arc<dyn wan::ReachHome> {
        Arc::new(Arc::clone(self))
    }

    /// Whether a peer can be asked over a link on the local network.
    fn is_near(&self, peer: &NodeId) -> bool {
        let peer = self.peers.get(&PeerId::Node(*peer));
        peer.and_then(|peer| peer.link_of(true)).is_some_and(|link| link.is_usable())
    }
}

impl lan::Home for Arc<Node> {
    fn own(&self) -> &Own {
        &self.own
    }

    fn peers(&self) -> &Peers {
        &self.peers
    }

    fn lan(&self) -> &Lan {
        &self.lan
    }

    fn opened(&self, link: &Arc<Link>, hello: &Hello) {
        Node::opened(self, link, Some(hello));
    }

    fn closed(&self, link: &Arc<Link>, why: &str) {
        Node::closed(self, link, why);
    }

    fn received(&self, link: &Arc<Link>, payload: Bytes) {
        Node::received(self, link, payload);
    }

    fn changed(&self, peer: &Arc<Peer>) {
        self.refresh(peer);
    }
}

impl provider::Home for Node {
    fn may_ask(&self, peer: &Peer) -> bool {
        self.own.may_ask(peer)
    }

    fn may_ask_over(&self, link: &Link) -> bool {
        self.own.may_ask_over(link)
    }

    fn answers_on(&self, link: &Link) -> bool {
        self.inbound.answers_on(link)
    }

    fn reach(self: Arc<Self>, peer: Arc<Peer>) -> BoxFuture<'static, Result<Arc<Link>, NoLink>> {
        Box::pin(async move { wan::reach(&self.reach_home(), &peer).await })
    }
}

impl transfer::Home for Arc<Node> {
    fn peers(&self) -> Vec<Arc<Peer>> {
        self.peers.all()
    }

    fn may_ask(&self, peer: &Peer) -> bool {
        self.own.may_ask(peer)
    }

    fn may_ask_over(&self, link: &Link) -> bool {
        self.own.may_ask_over(link)
    }

    fn reach(&self, peer: Arc<Peer>) -> BoxFuture<'static, Option<Arc<Link>>> {
        let home = self.reach_home();
        Box::pin(async move { wan::reach(&home, &peer).await.ok() })
    }

    fn doing(&self) -> Doing {
        self.own.facts.doing()
    }

    fn tasks(&self) -> &TaskTracker {
        &self.own.tasks
    }

    fn stop(&self) -> &CancellationToken {
        &self.own.stop
    }
}

impl wan::ReachHome for Arc<Node> {
    fn own(&self) -> &Own {
        &self.own
    }

    fn relays(&self) -> &wan::Relays {
        &self.relays
    }

    fn is_near(&self, peer: &NodeId) -> bool {
        Node::is_near(self, peer)
    }

    fn dial(
        &self,
        address: SocketAddr,
        expects: NodeId,
    ) -> BoxFuture<'static, Result<Arc<Link>, NoLink>> {
        let home: Arc<dyn lan::Home> = Arc::new(Self::clone(self));
        Box::pin(async move { lan::dial_sealed(&home, address, &expects).await })
    }
}

impl wan::Home for Arc<Node> {
    fn identity(&self) -> &Identity {
        &self.own.identity
    }

    fn psk(&self) -> Option<&PasscodeKey> {
        self.own.psk.as_ref()
    }

    fn trusts(&self, node: &NodeId) -> bool {
        self.own.settings.trusted.contains(node)
    }

    fn requires_sealed(&self) -> bool {
        self.own.settings.require_sealed
    }

    fn name(&self) -> String {
        self.own.settings.name.clone()
    }

    fn hello(&self) -> Hello {
        self.own.facts.hello(true)
    }

    fn heartbeat(&self) -> Heartbeat {
        self.own.facts.heartbeat()
    }

    fn capabilities(&self) -> Capabilities {
        self.own.facts.capabilities()
    }

    fn listed(&self, relay: &Arc<str>, peer: &NodeId, name: &str, capabilities: &Capabilities) {
        let Some(peer) = self.peers.meet(&PeerId::Node(*peer)) else {
            return self.own.counts.bad("a peer too many on a relay's list");
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
        wan::told_addresses(&self.reach_home(), peer, &warren.addresses, link);
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
        Node::is_near(self, peer)
    }

    fn bad(&self, what: &str) {
        self.own.counts.bad(what);
    }
}
