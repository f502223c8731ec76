//! This machine, as all parts of its mesh know it: its identity, its settings, and what runs for it.

use std::sync::Arc;

use base::NodeId;
use seal::{Identity, PasscodeKey};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    counts::Counts,
    facts::Facts,
    link::Link,
    peer::{Peer, PeerId},
    settings::Settings,
};

/// This machine.
pub(crate) struct Own {
    pub(crate) settings: Settings,
    pub(crate) identity: Arc<Identity>,
    /// Derived from the passcode, if there is one.
    pub(crate) psk: Option<PasscodeKey>,
    /// The facts that it sends to peers about itself.
    pub(crate) facts: Facts,
    pub(crate) counts: Counts,
    /// The tasks of links and answers, so that the mesh can wait for their end.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Own {
    pub(crate) fn id(&self) -> NodeId {
        self.identity.node_id()
    }

    /// Whether requests of this machine may go to a peer. With a passcode they go only to peers that prove
    /// it or are trusted, and with `require_sealed` only to Warrens. A Warren without a link passes here: its
    /// proof is checked once there is one.
    pub(crate) fn may_ask(&self, peer: &Peer) -> bool {
        match peer.link() {
            Some(link) => self.may_ask_over(&link),
            None if self.settings.require_sealed => peer.facts().warren.is_some(),
            None => self.psk.is_none() || self.trusts(&peer.id) || peer.facts().warren.is_some(),
        }
    }

    /// Whether requests of this machine may go over a link.
    pub(crate) fn may_ask_over(&self, link: &Link) -> bool {
        self.psk.is_none() || link.proved
    }

    fn trusts(&self, peer: &PeerId) -> bool {
        peer.node().is_some_and(|node| self.settings.trusted.contains(node))
    }
}
