//! The node, as the providers of its peers see it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{
    link::{Link, NoLink},
    peer::Peer,
};

/// The node, as the providers of its peers see it.
pub(crate) trait Home: Send + Sync + 'static {
    /// Whether requests of this machine may go to a peer.
    fn may_ask(&self, peer: &Peer) -> bool;
    /// Whether they may go over a link.
    fn may_ask_over(&self, link: &Link) -> bool;
    /// Whether a request that came over this link is being answered.
    fn answers_on(&self, link: &Link) -> bool;
    /// The link to a peer: the one that there is, or one that is opened for it.
    fn reach(self: Arc<Self>, peer: Arc<Peer>) -> BoxFuture<'static, Result<Arc<Link>, NoLink>>;
}
