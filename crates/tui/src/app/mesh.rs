//! The peers of the mesh.

use client::admin::mesh::{MeshPeer, MeshPeers};

use super::{list::List, reading::Reading};

/// The peers of the mesh.
#[derive(Debug, Default)]
pub struct Mesh {
    /// The peers, if the server takes part in the mesh and shows them.
    pub told: Reading<MeshPeers>,
    /// The place in the list.
    pub list: List,
    /// The peer that is shown whole, by its id.
    pub whole: Option<String>,
}

impl Mesh {
    /// The peers.
    pub fn peers(&self) -> &[MeshPeer] {
        self.told.known().map_or(&[], |told| &told.peers)
    }

    /// Those that could not be linked to, in words.
    pub fn unlinked(&self) -> Vec<String> {
        let unlinked = self.told.known().map_or(&[][..], |told| &told.unlinked);
        unlinked.iter().map(|one| format!("No link to {}: {}", one.place, one.why)).collect()
    }

    /// The one that is shown whole.
    pub fn whole(&self) -> Option<&MeshPeer> {
        let id = self.whole.as_ref()?;
        self.peers().iter().find(|peer| peer.id == *id)
    }

    /// Shows the chosen one whole.
    pub fn open(&mut self) {
        self.whole = self.peers().get(self.list.at).map(|peer| peer.id.clone());
    }
}
