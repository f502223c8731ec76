//! This end's part of a handshake.

use std::net::SocketAddr;

use base::NodeId;
use protocol::mesh::cluster::{Hello, WarrenHello};
use seal::{Identity, PasscodeKey, hashes_equal};

use crate::{facts::device_id, lan::sealed_peers::SealedPeers};

use super::failure::Failure;

/// This end's keys, rules and hellos.
pub(in crate::lan) struct Local<'a> {
    pub(in crate::lan) identity: &'a Identity,
    /// Derived from the passcode, if there is one.
    pub(in crate::lan) psk: Option<&'a PasscodeKey>,
    /// The hash of the passcode, as stock peers make it.
    pub(in crate::lan) hash: Option<&'a str>,
    /// Nodes that need not prove the passcode.
    pub(in crate::lan) trusted: &'a [NodeId],
    /// Whether only sealed links are accepted.
    pub(in crate::lan) require_sealed: bool,
    /// Peers that had a sealed link.
    pub(in crate::lan) sealed_peers: &'a SealedPeers,
    /// This node's hello in clear text. Both hellos have `warren`.
    pub(in crate::lan) open: Hello,
    /// Its hello over a sealed link.
    pub(in crate::lan) sealed: Hello,
}

/// A connection that is dialled.
#[derive(Debug, Clone, Default)]
pub(in crate::lan) struct Call {
    /// The address.
    pub(in crate::lan) address: Option<SocketAddr>,
    /// The node that must answer, if one is expected. It is a Warren, and is greeted in the form of
    /// Warrens.
    pub(in crate::lan) expects: Option<NodeId>,
    /// Whether to send the passcode's hash to a stock peer.
    pub(in crate::lan) with_hash: bool,
}

impl Local<'_> {
    /// This node's id.
    pub(super) fn id(&self) -> NodeId {
        self.identity.node_id()
    }

    /// Whether a node has to prove the passcode to this one.
    pub(super) fn wants_passcode(&self, of: &NodeId) -> bool {
        self.psk.is_some() && !self.trusted.contains(of)
    }

    /// The Warren to which a device's UUID belongs, if it is trusted or had a sealed link. Trusted
    /// nodes need not be remembered, so strangers cannot take up their room.
    pub(super) fn warren_of(&self, uuid: &str) -> Option<NodeId> {
        let is_it = |node: &&NodeId| device_id(node).as_str().eq_ignore_ascii_case(uuid);
        self.sealed_peers.device(uuid).or_else(|| self.trusted.iter().find(is_it).copied())
    }

    /// The first frame of a connection.
    pub(super) fn hello(&self, call: &Call) -> Hello {
        let mut hello = self.open.clone();
        if call.with_hash {
            hello.cluster_passcode_hash = self.hash.map(str::to_owned);
        }
        hello
    }

    /// The answer to a hello.
    pub(super) fn ack(&self, hello: &Hello) -> Hello {
        let mut ack = self.open.clone();
        match (&hello.warren, &mut ack.warren) {
            (Some(theirs), Some(own)) => own.psk = self.wants_passcode(&theirs.node_id),
            // The peer has sent the same hash, so it learns nothing from this one.
            _ => ack.cluster_passcode_hash = self.hash.map(str::to_owned),
        }
        ack
    }

    /// Fails if the link leads back to this process. Another process with this node's id is not
    /// refused here: it must prove the id, which is then shown to people as a problem.
    pub(super) fn not_myself(&self, theirs: &WarrenHello) -> Result<(), Failure> {
        let own = self.open.warren.as_ref().and_then(|own| own.instance);
        let is_self = theirs.node_id == self.id() && own.is_some() && theirs.instance == own;
        if is_self { Err(Failure::Myself) } else { Ok(()) }
    }

    /// The rule of stock peers: both ends have the same passcode, or neither has one.
    pub(super) fn same_passcode(&self, theirs: Option<&str>) -> Result<(), Failure> {
        match (self.hash, theirs.filter(|hash| !hash.is_empty())) {
            (None, None) => Ok(()),
            (Some(own), Some(theirs)) if hashes_equal(own, theirs) => Ok(()),
            (Some(_), Some(_)) => Err(Failure::OtherPasscode),
            _ => Err(Failure::OneHasNone),
        }
    }
}
