//! The node, as the transfers see it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{link::Link, peer::Peer, share::Doing};

/// The node, as the transfers see it.
pub(crate) trait Home: Send + Sync + 'static {
    /// All peers that are known.
    fn peers(&self) -> Vec<Arc<Peer>>;
    /// Whether this machine may ask a peer for anything.
    fn may_ask(&self, peer: &Peer) -> bool;
    /// Whether it may ask for anything over a link.
    fn may_ask_over(&self, link: &Link) -> bool;
    /// A link to a peer that has none.
    fn reach(&self, peer: Arc<Peer>) -> BoxFuture<'static, Option<Arc<Link>>>;
    /// How this machine is doing.
    fn doing(&self) -> Doing;
    /// Where what runs is kept.
    fn tasks(&self) -> &TaskTracker;
    /// Cancelled when the node stops.
    fn stop(&self) -> &CancellationToken;
}
