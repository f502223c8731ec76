//! Links through relays, and the direct ones that take their place.
//!
//! A task for each relay keeps a connection to it: registers this node, asks who is there, and carries
//! the sessions over it. Each session has a task that sends; what arrives is read by the relay's own.
//!
//! - `relay`: a relay, dialled again and again; `retry` says when
//! - `connection`: one connection to it; `clock` says when it is told what
//! - `sort`: whether it is a Warren's
//! - `registration`: what this node tells of itself
//! - `roster`: the nodes that a relay lists
//! - `sessions`: the sessions over it, until they are links; `words` between their ends
//! - `outward`: the outgoing payloads of a session
//! - `reach`: a link to a peer that has none
//! - `direct`: links that take the traffic off a relay
//! - `memory`: what is remembered of peers
//! - `home`: this machine, as all of these see it
//! - `status`: what there is to see

mod clock;
mod connection;
mod direct;
#[cfg(test)]
mod fake;
mod home;
mod memory;
mod outward;
mod reach;
mod registration;
mod relay;
mod retry;
mod roster;
mod sessions;
mod sort;
mod status;
#[cfg(test)]
mod tests;
mod words;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

pub(crate) use self::status::RelayStatus;
use self::{connection::Parts, memory::Memory, reach::Flights, relay::Relay};
use crate::{lan::NoLink, link::Link, node::Node, peer::Peer};

/// The most relays that are kept.
const MAX_RELAYS: usize = 32;

/// The relays that this machine is registered at.
#[derive(Default)]
pub(crate) struct Relays {
    all: Mutex<Vec<Arc<Relay>>>,
    memory: Arc<Memory>,
    flights: Flights,
}

impl Relays {
    /// How this machine is doing at each, in the order of the settings.
    pub(crate) fn status(&self) -> Vec<RelayStatus> {
        self.lock().iter().map(|relay| relay.status()).collect()
    }

    /// Those that list a peer and are connected, in an order that is the same at both ends.
    fn that_list(&self, peer: &Peer) -> Vec<Arc<Relay>> {
        let hosts = peer.relays();
        let lists =
            |relay: &&Arc<Relay>| hosts.contains(&relay.host) && relay.shown.is_registered();
        let mut relays: Vec<_> = self.lock().iter().filter(lists).cloned().collect();
        relays.sort_by(|one, other| one.host.cmp(&other.host));
        relays
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Relay>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a connection to each relay of the settings, until the node stops.
pub(crate) async fn run(node: Arc<Node>) {
    let mut tasks = JoinSet::new();
    for url in addresses(&node) {
        let (relay, asks) = Relay::new(&url);
        let parts = Parts {
            home: Arc::new(Arc::clone(&node)),
            memory: Arc::clone(&node.relays.memory),
            relay: Arc::clone(&relay.host),
            shown: Arc::clone(&relay.shown),
            tasks: node.tasks.clone(),
            stop: node.stop.clone(),
        };
        node.relays.lock().push(Arc::new(relay));
        tasks.spawn(relay::run(url, parts, asks));
    }
    // One that panicked has nothing left to say.
    while tasks.join_next().await.is_some() {}
}

/// The relays of the settings, each once: a node would throw itself out of one that it dials twice.
fn addresses(node: &Node) -> Vec<url::Url> {
    let mut urls: Vec<url::Url> = Vec::new();
    let own = node.identity.node_id();
    for text in &node.settings.relays {
        let shown = base::redact_url(text);
        match relay::address(text, &own) {
            Err(why) => tracing::error!(relay = shown, why, "not the address of a relay"),
            Ok(url)
                if urls.iter().any(|other| {
                    other[..url::Position::AfterPort] == url[..url::Position::AfterPort]
                }) =>
            {
                tracing::warn!(relay = shown, "a relay is in the settings twice");
            }
            Ok(_) if urls.len() == MAX_RELAYS => tracing::warn!(relay = shown, "a relay too many"),
            Ok(url) => urls.push(url),
        }
    }
    urls
}

/// The link to a peer: the one that there is, or one that is opened for it, within 10 s.
pub(crate) async fn reach(node: &Arc<Node>, peer: &Arc<Peer>) -> Result<Arc<Link>, NoLink> {
    if let Some(link) = peer.link() {
        return Ok(link);
    }
    match peer.id.node() {
        Some(id) => node.relays.flights.join(node, peer, *id).await,
        None => Err(NoLink("there is no link to it, and no relay knows it".to_owned())),
    }
}
