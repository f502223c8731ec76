//! The node, as what opens links to peers sees it.

use std::{net::SocketAddr, sync::Arc};

use base::NodeId;
use futures_util::future::BoxFuture;

use super::relays::Relays;
use crate::{
    link::{Link, NoLink},
    own::Own,
};

/// The node, as what opens links to peers sees it.
pub(crate) trait ReachHome: Send + Sync + 'static {
    /// This machine.
    fn own(&self) -> &Own;
    /// The relays that it is registered at.
    fn relays(&self) -> &Relays;
    /// Whether a peer can be asked over a link on the local network.
    fn is_near(&self, peer: &NodeId) -> bool;
    /// Links to a node at an address, sealed, and to nobody else that answers there.
    fn dial(
        &self,
        address: SocketAddr,
        expects: NodeId,
    ) -> BoxFuture<'static, Result<Arc<Link>, NoLink>>;
}
