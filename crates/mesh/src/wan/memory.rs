//! Facts about peers and mesh relays that are remembered while this process runs.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::NodeId;
use tokio::time::Instant;

use super::sort::Sort;

/// The most peers of which a fact is remembered.
const MAX_PEERS: usize = 4_096;

/// The most addresses of one peer.
pub(super) const MAX_ADDRESSES: usize = 8;

/// How long addresses without an answer are not tried again.
const TRIED: Duration = Duration::from_secs(60);

/// Facts about peers and mesh relays.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<MemoryState>);

#[derive(Debug, Default)]
struct MemoryState {
    /// Peers that had a sealed link. They are never sent anything in clear text again. Otherwise a
    /// mesh relay could remove the mark by which Warrens know each other, and read everything.
    sealed: HashSet<NodeId>,
    /// The addresses of peers' LAN listeners, from their sealed hellos.
    addresses: HashMap<NodeId, Addresses>,
    /// The sorts of mesh relays, by host. Mesh relays come from the settings, so there are few. One
    /// that was a Warren's stays one. Otherwise an attacker in between could make this node send
    /// the signature that can be reused.
    relays: HashMap<Arc<str>, Sort>,
}

#[derive(Debug)]
struct Addresses {
    all: Vec<SocketAddr>,
    /// When they were last tried.
    tried: Option<Instant>,
}

impl Memory {
    /// Notes that a link to a peer is sealed.
    pub(super) fn sealed(&self, peer: &NodeId) {
        let mut state = self.lock();
        if state.sealed.len() < MAX_PEERS {
            state.sealed.insert(*peer);
        }
    }

    /// Whether a link to a peer was ever sealed.
    pub(super) fn was_sealed(&self, peer: &NodeId) -> bool {
        self.lock().sealed.contains(peer)
    }

    /// Notes the sort that a mesh relay has shown.
    pub(super) fn relay_is(&self, host: &Arc<str>, sort: Sort) {
        let mut state = self.lock();
        let known = state.relays.entry(Arc::clone(host)).or_insert(sort);
        if sort == Sort::Warren {
            *known = sort;
        }
    }

    /// The sort that a mesh relay has shown.
    pub(super) fn relay(&self, host: &str) -> Option<Sort> {
        self.lock().relays.get(host).copied()
    }

    /// Sets the addresses at which a peer can be reached. There are at most [`MAX_ADDRESSES`].
    pub(super) fn reachable_at(&self, peer: &NodeId, all: Vec<SocketAddr>) {
        let mut state = self.lock();
        let known = state.addresses.contains_key(peer);
        if all.is_empty() {
            state.addresses.remove(peer);
        } else if let Some(old) = state.addresses.get_mut(peer)
            && old.all == all
        {
            // Nothing to do. The time of the last try is kept.
        } else if known || state.addresses.len() < MAX_PEERS {
            state.addresses.insert(*peer, Addresses { all, tried: None });
        }
    }

    /// The addresses at which a peer should be dialled now. There are none if they were tried less
    /// than a minute ago.
    pub(super) fn to_try(&self, peer: &NodeId, now: Instant) -> Vec<SocketAddr> {
        let mut state = self.lock();
        let Some(addresses) = state.addresses.get_mut(peer) else { return Vec::new() };
        if addresses.tried.is_some_and(|tried| now.saturating_duration_since(tried) < TRIED) {
            return Vec::new();
        }
        addresses.tried = Some(now);
        addresses.all.clone()
    }

    /// Notes that a peer was reached directly, so its addresses are good.
    pub(super) fn reached(&self, peer: &NodeId) {
        if let Some(addresses) = self.lock().addresses.get_mut(peer) {
            addresses.tried = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: usize) -> NodeId {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&number.to_be_bytes());
        NodeId::new(id)
    }

    #[test]
    fn addresses_where_nobody_answers_are_left_alone_for_a_minute() {
        let (memory, peer, start) = (Memory::default(), node(1), Instant::now());
        let address: SocketAddr = "192.0.2.7:1".parse().unwrap();
        memory.reachable_at(&peer, vec![address]);
        assert_eq!(memory.to_try(&peer, start), [address]);
        memory.reachable_at(&peer, vec![address]);
        assert!(memory.to_try(&peer, start + TRIED / 2).is_empty());
        assert_eq!(memory.to_try(&peer, start + TRIED), [address]);
        memory.reached(&peer);
        assert_eq!(memory.to_try(&peer, start + TRIED), [address]);
        memory.reachable_at(&peer, Vec::new());
        assert!(memory.to_try(&peer, start + 3 * TRIED).is_empty());
    }

    #[test]
    fn a_relay_that_was_a_warrens_stays_that() {
        let (memory, host) = (Memory::default(), Arc::from("relay.test"));
        assert_eq!(memory.relay(&host), None);
        for (shown, known) in
            [(Sort::Stock, Sort::Stock), (Sort::Warren, Sort::Warren), (Sort::Stock, Sort::Warren)]
        {
            memory.relay_is(&host, shown);
            assert_eq!(memory.relay(&host), Some(known));
        }
    }

    #[test]
    fn remembered_peers_are_bounded() {
        let memory = Memory::default();
        for number in 0..=MAX_PEERS {
            memory.sealed(&node(number));
            memory.reachable_at(&node(number), vec!["192.0.2.7:1".parse().unwrap()]);
        }
        let state = memory.lock();
        assert_eq!((state.sealed.len(), state.addresses.len()), (MAX_PEERS, MAX_PEERS));
    }
}
