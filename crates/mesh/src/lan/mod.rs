//! Links over TCP on the local network.
//!
//! - `open`: connections that become links
//! - `keep`: a link to one peer, for as long as it is wanted
//! - `find`: this machine announced, and others found
//! - `sightings`: what mDNS has shown
//! - `handshake`: how a link begins
//! - `pump`: a link's bytes, both ways
//! - `frames`: frames over a connection
//! - [`tie`]: which of two links between the same two nodes stays
//! - `sealed_peers`: peers that had a sealed link; `unlinked`: peers that were met and have none
//! - `limits`: how much of this machine links may take
//! - `home`: the node, as links see it; `shared`: the state that they share

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base::NodeId;
use tokio::{net::TcpListener, task::JoinSet, time::timeout};

use self::{
    handshake::Call,
    keep::{PeerAddress, Target},
};
pub(crate) use self::{home::Home, shared::Lan};
use crate::{
    link::{Link, NoLink},
    peer::PeerId,
};

mod find;
mod frames;
mod handshake;
mod home;
mod keep;
mod limits;
mod open;
mod pump;
mod sealed_peers;
mod shared;
mod sightings;
pub(crate) mod tie;
mod unlinked;

/// How long it may take to link to a node at an address that it may be reached by.
const DIRECT: Duration = Duration::from_secs(5);

/// Listens, announces this machine, looks for others and keeps a link to each, until the node stops.
pub(crate) async fn run(node: Arc<dyn Home>, listener: Option<TcpListener>) {
    let bound = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let advertise = node.own().settings.advertise;
    let announced = bound.filter(|_| advertise).and_then(|bound| find::announce(&*node, bound));
    let mut running = JoinSet::new();
    for peer in &node.own().settings.peers {
        running.spawn(keep::keep(Arc::clone(&node), named(peer)));
    }
    if advertise {
        running.spawn(find::look(Arc::clone(&node)));
    }
    match listener {
        Some(listener) => {
            node.own().stop.run_until_cancelled(open::listen(&node, &listener)).await;
        }
        None => node.own().stop.cancelled().await,
    }
    running.shutdown().await;
    if let Some(announced) = announced {
        announced.stop().await;
    }
}

fn named(peer: &str) -> Target {
    let place = PeerAddress::Named(peer.to_owned());
    Target { name: peer.to_owned(), place, expects: None, peer: None, wait: Duration::ZERO }
}

/// Links to a node at an address, sealed, and to nobody else that answers there. Takes at most 5 s. If
/// there is a link on the LAN by then, that one.
pub(crate) async fn dial_sealed(
    node: &Arc<dyn Home>,
    address: SocketAddr,
    expects: &NodeId,
) -> Result<Arc<Link>, NoLink> {
    let peer = PeerId::Node(*expects);
    let linked = || node.peers().get(&peer)?.link_of(true).filter(|link| link.is_usable());
    if let Some(link) = linked() {
        return Ok(link);
    }
    let call = Call { address: Some(address), expects: Some(*expects), with_hash: false };
    let failure = match timeout(DIRECT, open::dial(node, call)).await {
        Ok(Ok(link)) if !link.is_closed() => return Ok(link),
        // Another one took its place meanwhile.
        Ok(Ok(link)) => link.why_closed().unwrap_or_default(),
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "it took too long".to_owned(),
    };
    linked().ok_or_else(|| NoLink(format!("no direct link to {}: {failure}", expects.short())))
}

#[cfg(test)]
mod tests;
