//! Parcels: bytes that another part of the program sends to the same part of a peer's program. The
//! mesh carries them and does not read them. They go over sealed links only, so each end knows the
//! other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use base::NodeId;
use bytes::Bytes;

use crate::{link::Link, node::Mesh, peer::PeerId};

/// The first byte of a payload that is a parcel.
pub(crate) const PARCEL: u8 = 3;

/// The longest parcel, in bytes.
pub const MOST: usize = 64 * 1024;

/// Receives the parcels of peers.
pub trait Receiver: Send + Sync {
    /// A peer sent these bytes. The method must not wait.
    fn received(&self, from: NodeId, bytes: Bytes);
    /// A link to a peer has ended, so the last parcels may be lost.
    fn lost(&self, peer: NodeId);
}

/// Why a parcel was not sent to a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// Neither a link to it exists, nor does a mesh relay list it.
    #[error("it is not in the mesh now")]
    Unknown,
    /// It could not be linked to.
    #[error("no link of the mesh leads to it: {0}")]
    NoLink(String),
    /// A machine in between could read it, or the peer would not understand it.
    #[error("its link of the mesh is not sealed")]
    NotSealed,
    /// The link has ended.
    #[error("the link of the mesh has ended")]
    Closed,
    /// It is longer than [`MOST`].
    #[error("it is longer than {MOST} bytes")]
    TooLong,
}

/// The part of the program that receives parcels, if there is one. Weak, since that part may hold
/// the mesh.
#[derive(Default)]
pub(crate) struct Parcels(Mutex<Option<Weak<dyn Receiver>>>);

impl Parcels {
    /// Passes on a parcel.
    pub(crate) fn received(&self, link: &Link, mut payload: Bytes) {
        if let (Some(from), Some(receiver)) = (link.peer.node(), self.receiver()) {
            receiver.received(*from, payload.split_off(1));
        }
    }

    /// Reports that a link has ended.
    pub(crate) fn link_closed(&self, link: &Link) {
        if let (Some(peer), Some(receiver)) = (link.peer.node(), self.receiver()) {
            receiver.lost(*peer);
        }
    }

    fn receiver(&self) -> Option<Arc<dyn Receiver>> {
        self.lock().as_ref()?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Weak<dyn Receiver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mesh {
    /// Sets the part of the program that receives parcels from now on.
    pub fn set_receiver(&self, receiver: Weak<dyn Receiver>) {
        *self.0.parcels.lock() = Some(receiver);
    }

    /// Whether a peer is known now: there is a link to it, or a mesh relay lists it.
    pub fn knows(&self, peer: NodeId) -> bool {
        self.0.peers.get(&PeerId::Node(peer)).is_some()
    }

    /// Sends bytes to a peer, once there is room for them on its link. If there is no link, one is
    /// opened within 10 s. As long as the link lasts, parcels arrive in the order in which they
    /// were sent.
    ///
    /// # Errors
    /// [`NotSent`].
    pub async fn send(&self, to: NodeId, bytes: &[u8]) -> Result<(), NotSent> {
        if bytes.len() > MOST {
            return Err(NotSent::TooLong);
        }
        let peer = self.0.peers.get(&PeerId::Node(to)).ok_or(NotSent::Unknown)?;
        let link = self.0.wan.reach(&peer).await;
        let link = link.map_err(|no_link| NotSent::NoLink(no_link.0))?;
        if !(link.sealed && link.warren) {
            return Err(NotSent::NotSealed);
        }
        let payload = [&[PARCEL], bytes].concat();
        link.say_encoded(payload).await.map_err(|_| NotSent::Closed)
    }
}
