//! Links through mesh relays, and the direct ones that take their place.
//!
//! For each mesh relay, a task keeps a connection to it. The task registers this node, asks for the
//! list of nodes, and reads what arrives. Each relay session has a task of its own that sends.
//!
//! - `relay`: one mesh relay, dialled again and again, and its state; `retry` says when
//! - `connection`: one connection to it; `clock`: the schedule of its messages
//! - `sort`: whether a mesh relay is a Warren's or a stock one
//! - `registration`: this node's offer at a mesh relay
//! - `roster`: the nodes that a mesh relay lists
//! - `sessions`: the sessions over it, until they are links; `words`: frames between their ends
//! - `outward`: the outgoing payloads of a session
//! - `reach`: opens a link to a peer that has none
//! - `direct`: direct links, which relieve the mesh relays
//! - `memory`: what is remembered of peers and mesh relays

mod clock;
mod connection;
mod direct;
#[cfg(test)]
mod fake;
mod memory;
mod outward;
mod reach;
mod registration;
mod relay;
mod retry;
mod roster;
mod sessions;
mod sort;
#[cfg(test)]
mod tests;
mod words;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use base::NodeId;
use tokio::task::JoinSet;

pub(crate) use self::relay::RelayStatus;
use self::{connection::Parts, memory::Memory, reach::Flights, relay::Relay};
use crate::{
    lan::Lan,
    link::{Link, LinkEvents, NoLink},
    peer::{Peer, Peers},
    this_machine::ThisMachine,
};

/// The most mesh relays at which this machine registers.
const MAX_RELAYS: usize = 32;

/// The mesh relays at which this machine registers, and what is remembered of the peers behind
/// them.
pub(crate) struct Wan {
    machine: Arc<ThisMachine>,
    peers: Arc<Peers>,
    /// Makes direct links.
    lan: Arc<Lan>,
    /// Weak, since the node owns this.
    events: Weak<dyn LinkEvents>,
    relays: Mutex<Vec<Arc<Relay>>>,
    memory: Arc<Memory>,
    flights: Flights,
}

impl Wan {
    pub(crate) fn new(
        machine: Arc<ThisMachine>,
        peers: Arc<Peers>,
        lan: Arc<Lan>,
        events: Weak<dyn LinkEvents>,
    ) -> Self {
        Self {
            machine,
            peers,
            lan,
            events,
            relays: Mutex::default(),
            memory: Arc::default(),
            flights: Flights::default(),
        }
    }

    /// The state of this machine at each mesh relay, in the order of the settings.
    pub(crate) fn status(&self) -> Vec<RelayStatus> {
        self.relays().iter().map(|relay| relay.status()).collect()
    }

    /// The link to a peer: the present one, or a new one, which is opened within 10 s.
    ///
    /// # Errors
    /// [`NoLink`], in words for people.
    pub(crate) async fn reach(self: &Arc<Self>, peer: &Arc<Peer>) -> Result<Arc<Link>, NoLink> {
        if let Some(link) = peer.link() {
            return Ok(link);
        }
        match peer.id.node() {
            Some(id) => reach::join(self, peer, *id).await,
            None => Err(NoLink("there is no link to it, and no relay knows it".to_owned())),
        }
    }

    /// Takes in where a peer's LAN listener can be reached, as the peer said over `link`. A direct
    /// link is tried there.
    pub(crate) fn learn_addresses(
        self: &Arc<Self>,
        peer: &NodeId,
        addresses: &[SocketAddr],
        link: &Link,
    ) {
        let own = self.machine.settings.listen.map(|address| address.ip());
        self.memory.reachable_at(peer, direct::usable(addresses, own));
        // Without this check, a peer without the passcode could make this node dial any address.
        if link.proved && !addresses.is_empty() {
            direct::begin(self, *peer, link.opened_here);
        }
    }

    /// The connected mesh relays that list a peer. The order is the same at both ends, so that two
    /// nodes which reach for each other at once meet at the same mesh relay.
    fn listing(&self, peer: &Peer) -> Vec<Arc<Relay>> {
        let hosts = peer.relays();
        let lists =
            |relay: &&Arc<Relay>| hosts.contains(&relay.host) && relay.status.is_registered();
        let mut relays: Vec<_> = self.relays().iter().filter(lists).cloned().collect();
        relays.sort_by(|one, other| one.host.cmp(&other.host));
        relays
    }

    fn relays(&self) -> MutexGuard<'_, Vec<Arc<Relay>>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a connection to each mesh relay of the settings, until the node stops.
pub(crate) async fn run(wan: Arc<Wan>) {
    let Some(events) = wan.events.upgrade() else { return };
    let mut tasks = JoinSet::new();
    for url in addresses(&wan.machine) {
        let (relay, asks) = Relay::new(&url);
        let parts = Parts {
            machine: Arc::clone(&wan.machine),
            peers: Arc::clone(&wan.peers),
            events: Arc::clone(&events),
            memory: Arc::clone(&wan.memory),
            relay: Arc::clone(&relay.host),
            status: Arc::clone(&relay.status),
        };
        wan.relays().push(Arc::new(relay));
        tasks.spawn(relay::run(url, parts, asks));
    }
    // A task that panicked has ended as well, so its result does not matter.
    while tasks.join_next().await.is_some() {}
}

/// The mesh relays of the settings, each once. A node that dialled one twice would replace its own
/// connection there again and again.
fn addresses(machine: &ThisMachine) -> Vec<url::Url> {
    let mut urls: Vec<url::Url> = Vec::new();
    let id = machine.id();
    for text in &machine.settings.relays {
        let redacted = base::redact_url(text);
        match relay::address(text, &id) {
            Err(why) => tracing::error!(relay = redacted, why, "not the address of a relay"),
            Ok(url)
                if urls.iter().any(|other| {
                    other[..url::Position::AfterPort] == url[..url::Position::AfterPort]
                }) =>
            {
                tracing::warn!(relay = redacted, "a relay is in the settings twice");
            }
            Ok(_) if urls.len() == MAX_RELAYS => {
                tracing::warn!(relay = redacted, "a relay too many");
            }
            Ok(url) => urls.push(url),
        }
    }
    urls
}
