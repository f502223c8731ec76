//! This machine, as relays see it, and their reports to it.

use std::sync::Arc;

use base::NodeId;
use bytes::Bytes;
use protocol::mesh::{
    Capabilities,
    cluster::{Heartbeat, Hello},
};
use seal::{Identity, PasscodeKey};

use crate::link::Link;

/// This machine, as what runs for relays sees it.
pub(crate) trait Home: Send + Sync {
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
    /// Its offer.
    fn capabilities(&self) -> Capabilities;
    /// A relay lists a peer.
    fn listed(&self, relay: &Arc<str>, peer: &NodeId, name: &str, capabilities: &Capabilities);
    /// A relay lists a peer no longer.
    fn unlisted(&self, relay: &Arc<str>, peer: &NodeId);
    /// A link was greeted.
    fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>);
    /// The other end of a link has reported where else it can be reached.
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
