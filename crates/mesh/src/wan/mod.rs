//! Links through relays, and the direct ones that take their place.
//!
//! A task for each relay keeps a connection to it: registers this node, asks for the list of nodes, and carries
//! the sessions over it. Each session has a task that sends; what arrives is read by the relay's own.
//!
//! - `relays`: all of them; `relay`: one, dialled again and again; `retry` says when
//! - `connection`: one connection to it; `clock`: the schedule of its messages
//! - `sort`: whether it is a Warren's
//! - `registration`: this node's offer at a relay
//! - `roster`: the nodes that a relay lists
//! - `sessions`: the sessions over it, until they are links; `words` between their ends
//! - `outward`: the outgoing payloads of a session
//! - `reach`: a link to a peer that has none
//! - `direct`: links that take the traffic off a relay
//! - `memory`: what is remembered of peers
//! - `home`: this machine, as relays see it; `reach_home`: as `reach` and `direct` see it
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
mod reach_home;
mod registration;
mod relay;
mod relays;
mod retry;
mod roster;
mod sessions;
mod sort;
mod status;
#[cfg(test)]
mod tests;
mod words;

use std::{net::SocketAddr, sync::Arc};

use base::NodeId;
use tokio::task::JoinSet;

use self::{connection::Parts, relay::Relay};
pub(crate) use self::{home::Home, reach_home::ReachHome, relays::Relays, status::RelayStatus};
use crate::{
    link::{Link, NoLink},
    own::Own,
    peer::Peer,
};

/// The most relays that are kept.
const MAX_RELAYS: usize = 32;

/// Keeps a connection to each relay of the settings, until the node stops.
pub(crate) async fn run(home: Arc<dyn Home>, own: Arc<Own>, relays: Arc<Relays>) {
    let mut tasks = JoinSet::new();
    for url in addresses(&own) {
        let (relay, asks) = Relay::new(&url);
        let parts = Parts {
            home: Arc::clone(&home),
            memory: Arc::clone(&relays.memory),
            relay: Arc::clone(&relay.host),
            shown: Arc::clone(&relay.shown),
            tasks: own.tasks.clone(),
            stop: own.stop.clone(),
        };
        relays.add(relay);
        tasks.spawn(relay::run(url, parts, asks));
    }
    // One that panicked has nothing left to say.
    while tasks.join_next().await.is_some() {}
}

/// The relays of the settings, each once: a node would throw itself out of one that it dials twice.
fn addresses(own: &Own) -> Vec<url::Url> {
    let mut urls: Vec<url::Url> = Vec::new();
    let id = own.id();
    for text in &own.settings.relays {
        let shown = base::redact_url(text);
        match relay::address(text, &id) {
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
pub(crate) async fn reach(
    home: &Arc<dyn ReachHome>,
    peer: &Arc<Peer>,
) -> Result<Arc<Link>, NoLink> {
    if let Some(link) = peer.link() {
        return Ok(link);
    }
    match peer.id.node() {
        Some(id) => home.relays().flights.join(home, peer, *id).await,
        None => Err(NoLink("there is no link to it, and no relay knows it".to_owned())),
    }
}

/// A peer reported over `link` where its LAN listener can be reached: a direct link is tried there.
pub(crate) fn told_addresses(
    home: &Arc<dyn ReachHome>,
    peer: &NodeId,
    addresses: &[SocketAddr],
    link: &Link,
) {
    let own = home.own().settings.listen.map(|address| address.ip());
    home.relays().memory.reachable_at(peer, direct::usable(addresses, own));
    if link.proved && !addresses.is_empty() {
        direct::begin(home, *peer, link.opened_here);
    }
}
