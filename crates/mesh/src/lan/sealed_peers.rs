//! Peers that had a sealed link. While this process runs, it makes no link in clear text to them.
//! Otherwise an attacker in between could remove the mark by which Warrens know each other, and
//! read everything.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base::NodeId;

use crate::facts::device_id;

/// The most devices that are remembered, and the most addresses.
const MAX_SEEN: usize = 4_096;

/// Peers that had a sealed link.
#[derive(Debug, Default)]
pub(super) struct SealedPeers(Mutex<SealedPeersState>);

#[derive(Debug, Default)]
struct SealedPeersState {
    /// By the UUID that they send to stock peers, in lower case.
    devices: HashMap<String, NodeId>,
    /// By the address at which they were dialled.
    addresses: HashMap<SocketAddr, NodeId>,
}

impl SealedPeers {
    /// Notes that a link to a node is sealed. `dialled` is the address, if this end dialled it.
    pub(super) fn sealed(&self, node: &NodeId, dialled: Option<SocketAddr>) {
        let mut state = self.lock();
        remember(&mut state.devices, device_id(node).as_str().to_owned(), *node);
        if let Some(address) = dialled {
            remember(&mut state.addresses, address, *node);
        }
    }

    /// The node to which a device's UUID belongs.
    pub(super) fn device(&self, uuid: &str) -> Option<NodeId> {
        self.lock().devices.get(&uuid.to_ascii_lowercase()).copied()
    }

    /// The node that was linked at an address.
    pub(super) fn at(&self, address: &SocketAddr) -> Option<NodeId> {
        self.lock().addresses.get(address).copied()
    }

    fn lock(&self) -> MutexGuard<'_, SealedPeersState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds an entry if there is room. When the map is full, the first entries stay, so that strangers
/// cannot push a known peer out.
fn remember<K: std::hash::Hash + Eq>(map: &mut HashMap<K, NodeId>, key: K, node: NodeId) {
    if map.len() < MAX_SEEN || map.contains_key(&key) {
        map.insert(key, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_again_by_its_uuid_in_either_case_and_by_its_address() {
        let (seen, node) = (SealedPeers::default(), NodeId::new([7; 32]));
        let address = "192.0.2.7:1".parse().unwrap();
        seen.sealed(&node, Some(address));
        let uuid = device_id(&node);
        assert_eq!(seen.device(&uuid.as_str().to_uppercase()), Some(node));
        assert_eq!(seen.at(&address), Some(node));
        assert_eq!(seen.at(&"192.0.2.7:2".parse().unwrap()), None);
        assert_eq!(seen.device("other"), None);
    }

    #[test]
    fn remembered_peers_are_bounded() {
        let seen = SealedPeers::default();
        for number in 0..=MAX_SEEN {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_be_bytes());
            seen.sealed(&NodeId::new(id), None);
        }
        assert_eq!(seen.lock().devices.len(), MAX_SEEN);
    }
}
