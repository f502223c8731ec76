//! The mesh in the place of a member that carries links. It leads to machines by their keys, and
//! seals what goes over it, too.

use std::{
    pin::Pin,
    sync::{Arc, Weak},
};

use base::NodeId;
use bytes::Bytes;
use wire::{Frame, Outbox, OutboxReader};

use super::{CarriedEnd, Carrying, Hop, State, Through, ways::Reach};
use crate::link::frame::LinkFrame;

/// The numbers of direct links are below this one.
const FIRST: u64 = 1 << 63;
/// The most machines that the mesh leads to at a time.
const MOST: usize = 512;

/// The outcome of sending bytes. The error is in words for people.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// The mesh, as far as a cluster uses it.
pub trait MeshWay: Send + Sync {
    /// Whether it may lead to the machine with this key now.
    fn leads_to(&self, key: NodeId) -> bool;

    /// Sends bytes to the machine with this key, once there is room. Bytes that are sent one after
    /// the other arrive in that order, unless a loss is reported by
    /// [`Cluster::mesh_lost`](crate::Cluster::mesh_lost).
    fn send(&self, key: NodeId, bytes: Bytes) -> Sending<'_>;
}

impl Carrying {
    /// Uses the mesh from now on. Called once.
    pub(crate) fn use_mesh(&self, mesh: Arc<dyn MeshWay>) {
        let _set_before = self.mesh.set(mesh);
    }

    /// Whether the mesh may lead to a machine now.
    pub(crate) fn has_mesh_to(&self, key: NodeId) -> bool {
        self.mesh.get().is_some_and(|mesh| mesh.leads_to(key))
    }

    /// Opens a link to the member with this key over the mesh.
    pub(crate) fn open_over_mesh(self: &Arc<Self>, key: NodeId, to: &str) -> Option<CarriedEnd> {
        let link = self.mesh_link(key, to)?;
        self.open_at(&mut self.lock(), link, Through::Mesh, to)
    }

    /// Takes in bytes that the machine with this key sent over the mesh. `node` looks up which
    /// member it is, and is called only if no way over the mesh to it exists yet.
    pub(crate) fn received_over_mesh(
        self: &Arc<Self>,
        key: NodeId,
        node: impl FnOnce() -> Option<String>,
        bytes: Bytes,
    ) {
        let known = self.lock().mesh_link(key);
        let Some(link) = known.or_else(|| self.mesh_link(key, &node()?)) else { return };
        match LinkFrame::decode(bytes) {
            Ok(LinkFrame::Carried(bytes)) => self.received(link, bytes),
            _ => tracing::warn!(peer = %key.short(), "what came over the mesh cannot be read"),
        }
    }

    /// Notes that the last bytes sent to a machine may be lost.
    pub(crate) fn mesh_lost(self: &Arc<Self>, key: NodeId) {
        let link = self.lock().mesh_link(key);
        link.into_iter().for_each(|link| self.unlinked(link));
    }

    /// The number of the way over the mesh to a machine. Makes the way if it does not exist.
    fn mesh_link(self: &Arc<Self>, key: NodeId, node: &str) -> Option<u64> {
        let mesh = Arc::clone(self.mesh.get()?);
        let mut state = self.lock();
        if let Some(link) = state.mesh_link(key) {
            return Some(link);
        }
        if state.hops.values().filter(|hop| hop.by_mesh.is_some()).count() >= MOST {
            return None;
        }
        // Numbers are not used again. Otherwise a late end of one way would end the next one.
        let link = FIRST + state.mesh_links;
        state.mesh_links += 1;
        let (outbox, frames) = Outbox::detached();
        let (node, announced) = (node.to_owned(), Reach::default());
        state.hops.insert(link, Hop { node, by_mesh: Some(key), outbox, next: 0, announced });
        tokio::spawn(send(Arc::downgrade(self), link, mesh, key, frames));
        Some(link)
    }
}

impl State {
    fn mesh_link(&self, key: NodeId) -> Option<u64> {
        let mut hops = self.hops.iter();
        hops.find(|(_, hop)| hop.by_mesh == Some(key)).map(|(link, _)| *link)
    }
}

/// Sends the frames for one machine, until that fails or the way is no longer used.
async fn send(
    carrying: Weak<Carrying>,
    link: u64,
    mesh: Arc<dyn MeshWay>,
    key: NodeId,
    mut frames: OutboxReader,
) {
    while let Some(frame) = frames.next().await {
        let Frame::Binary(bytes) = frame else { continue };
        if let Err(words) = mesh.send(key, bytes).await {
            tracing::info!(peer = %key.short(), error = words, "the mesh carries no link to a member");
            break;
        }
    }
    if let Some(carrying) = carrying.upgrade() {
        carrying.unlinked(link);
    }
}
