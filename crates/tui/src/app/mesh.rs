//! The peers of the mesh.

use client::admin::mesh::{MeshPeer, MeshPeers};

use super::{list::List, reading::Reading};

/// The peers of the mesh.
#[derive(Debug, Default)]
pub struct Mesh {
    /// The peers, if the server takes part in the mesh and shows them.
    pub reading: Reading<MeshPeers>,
    /// The place in the list.
    pub list: List,
    /// The id of the peer that is shown in full.
    pub whole: Option<String>,
}

impl Mesh {
    /// The peers.
    pub fn peers(&self) -> &[MeshPeer] {
        self.reading.known().map_or(&[], |known| &known.peers)
    }

    /// The peers that could not be linked to, in words.
    pub fn unlinked(&self) -> Vec<String> {
        let unlinked = self.reading.known().map_or(&[][..], |known| &known.unlinked);
        unlinked.iter().map(|one| format!("No link to {}: {}", one.place, one.why)).collect()
    }

    /// The peer that is shown in full.
    pub fn whole(&self) -> Option<&MeshPeer> {
        let id = self.whole.as_ref()?;
        self.peers().iter().find(|peer| peer.id == *id)
    }

    /// Shows the chosen peer in full.
    pub fn open(&mut self) {
        self.whole = self.peers().get(self.list.at).map(|peer| peer.id.clone());
    }
}
