//! The node, as links on the local network see it.

use std::sync::Arc;

use bytes::Bytes;
use protocol::mesh::cluster::Hello;

use super::shared::Lan;
use crate::{
    link::Link,
    own::Own,
    peer::{Peer, Peers},
};

/// The node, as links on the local network see it.
pub(crate) trait Home: Send + Sync + 'static {
    /// This machine.
    fn own(&self) -> &Own;
    /// All peers that are known.
    fn peers(&self) -> &Peers;
    /// The state that all links share.
    fn lan(&self) -> &Lan;
    /// A link was greeted.
    fn opened(&self, link: &Arc<Link>, hello: &Hello);
    /// A link has ended, and why.
    fn closed(&self, link: &Arc<Link>, why: &str);
    /// A payload came over a link.
    fn received(&self, link: &Arc<Link>, payload: Bytes);
    /// A peer, or a link to it, has changed.
    fn changed(&self, peer: &Arc<Peer>);
}
