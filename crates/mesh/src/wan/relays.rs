//! The relays that this machine is registered at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{memory::Memory, reach::Flights, relay::Relay, status::RelayStatus};
use crate::peer::Peer;

/// The relays that this machine is registered at.
#[derive(Default)]
pub(crate) struct Relays {
    all: Mutex<Vec<Arc<Relay>>>,
    pub(super) memory: Arc<Memory>,
    pub(super) flights: Flights,
}

impl Relays {
    /// How this machine is doing at each, in the order of the settings.
    pub(crate) fn status(&self) -> Vec<RelayStatus> {
        self.lock().iter().map(|relay| relay.status()).collect()
    }

    /// Those that list a peer and are connected, in an order that is the same at both ends.
    pub(super) fn that_list(&self, peer: &Peer) -> Vec<Arc<Relay>> {
        let hosts = peer.relays();
        let lists =
            |relay: &&Arc<Relay>| hosts.contains(&relay.host) && relay.shown.is_registered();
        let mut relays: Vec<_> = self.lock().iter().filter(lists).cloned().collect();
        relays.sort_by(|one, other| one.host.cmp(&other.host));
        relays
    }

    pub(super) fn add(&self, relay: Relay) {
        self.lock().push(Arc::new(relay));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Relay>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
