//! The nodes that a mesh relay lists. Pure.

use std::collections::HashMap;

use base::NodeId;
use protocol::mesh::WarrenNode;

use super::sessions::{RelayedPeer, Seals};

/// The most peers that are taken from one mesh relay.
const MAX_LISTED: usize = 10_000;

/// The nodes that a mesh relay lists.
#[derive(Debug, Default)]
pub(super) struct Roster {
    listed: HashMap<NodeId, Entry>,
    /// The number of the list that is being read, or was read last.
    list: u64,
}

#[derive(Debug)]
struct Entry {
    warren: Option<Seals>,
    has_models: bool,
    /// The number of the last list that contained it.
    list: u64,
}

impl Roster {
    /// Begins to read a list.
    pub(super) fn begin(&mut self) {
        self.list += 1;
    }

    /// Takes in a peer of the list. Returns `false` if there are too many to take it.
    pub(super) fn lists(
        &mut self,
        peer: NodeId,
        warren: Option<&WarrenNode>,
        has_models: bool,
    ) -> bool {
        if self.listed.len() >= MAX_LISTED && !self.listed.contains_key(&peer) {
            return false;
        }
        let warren = warren.map(|warren| Seals { psk: warren.psk });
        self.listed.insert(peer, Entry { warren, has_models, list: self.list });
        true
    }

    /// Ends the reading of a list. Returns the peers that are no longer in it.
    pub(super) fn end(&mut self) -> Vec<NodeId> {
        let list = self.list;
        let gone = |(peer, entry): (&NodeId, &Entry)| (entry.list != list).then_some(*peer);
        let gone: Vec<NodeId> = self.listed.iter().filter_map(gone).collect();
        gone.iter().for_each(|peer| _ = self.listed.remove(peer));
        gone
    }

    /// Notes that a peer has left. Returns whether it was listed.
    pub(super) fn left(&mut self, peer: &NodeId) -> bool {
        self.listed.remove(peer).is_some()
    }

    /// The facts that the mesh relay gives about a peer.
    pub(super) fn who(&self, peer: &NodeId) -> RelayedPeer {
        match self.listed.get(peer) {
            Some(entry) => RelayedPeer { listed: true, warren: entry.warren },
            None => RelayedPeer::default(),
        }
    }

    /// Whether a peer is listed with models.
    pub(super) fn has_models(&self, peer: &NodeId) -> bool {
        self.listed.get(peer).is_some_and(|entry| entry.has_models)
    }

    /// All listed peers.
    pub(super) fn all(&self) -> Vec<NodeId> {
        self.listed.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId::new([1; 32]);
    const OTHER: NodeId = NodeId::new([2; 32]);

    #[test]
    fn a_node_that_is_no_longer_listed_is_gone() {
        let mut roster = Roster::default();
        roster.begin();
        assert!(roster.lists(ONE, None, true) && roster.lists(OTHER, None, false));
        assert!(roster.has_models(&ONE) && !roster.has_models(&OTHER));
        assert_eq!(roster.end(), []);
        roster.begin();
        roster.lists(OTHER, None, true);
        assert_eq!(roster.end(), [ONE]);
        assert!(!roster.who(&ONE).listed && roster.who(&OTHER).listed);
        assert!(!roster.has_models(&ONE) && roster.has_models(&OTHER));
        assert!(roster.left(&OTHER) && !roster.left(&OTHER));
    }

    #[test]
    fn a_list_is_bounded() {
        let mut roster = Roster::default();
        for number in 0..=MAX_LISTED {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_be_bytes());
            assert_eq!(roster.lists(NodeId::new(id), None, true), number < MAX_LISTED);
        }
    }
}
