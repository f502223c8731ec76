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
//! - `sealed_peers`: peers that had a sealed link
//! - `limits`: how much of this machine links may take

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use base::{NodeId, Secret};
use rand::RngExt;
use tokio::{net::TcpListener, task::JoinSet, time::timeout};

use self::{
    handshake::Call,
    keep::{PeerAddress, Target},
    limits::Limits,
    sealed_peers::SealedPeers,
};
use crate::{link::Link, node::Node, peer::PeerId};

mod find;
mod frames;
mod handshake;
mod keep;
mod limits;
mod open;
mod pump;
mod sealed_peers;
mod sightings;
pub(crate) mod tie;

/// How long it may take to link to a node at an address that it may be reached by.
const DIRECT: Duration = Duration::from_secs(5);

/// What the links on the local network have in common.
pub(crate) struct Lan {
    /// Drawn at random, so that a link to this very process is told from one to another with its key.
    instance: u64,
    /// Counts the connections that are begun.
    dials: AtomicU64,
    /// The passcode as stock peers hash it.
    hash: Option<String>,
    seen: SealedPeers,
    limits: Arc<Limits>,
}

impl Lan {
    pub(crate) fn new(passcode: Option<&Secret>) -> Self {
        Self {
            instance: rand::rng().random(),
            dials: AtomicU64::new(1),
            hash: passcode.and_then(|passcode| seal::stock_hash(passcode.expose())),
            seen: SealedPeers::default(),
            limits: Arc::default(),
        }
    }
}

/// Listens, announces this machine, looks for others and keeps a link to each, until the node stops.
pub(crate) async fn run(node: Arc<Node>, listener: Option<TcpListener>) {
    let bound = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let advertise = node.settings.advertise;
    let announced = bound.filter(|_| advertise).and_then(|bound| find::announce(&node, bound));
    let mut running = JoinSet::new();
    for peer in &node.settings.peers {
        running.spawn(keep::keep(Arc::clone(&node), named(peer)));
    }
    if advertise {
        running.spawn(find::look(Arc::clone(&node)));
    }
    match listener {
        Some(listener) => {
            node.stop.run_until_cancelled(open::listen(&node, &listener)).await;
        }
        None => node.stop.cancelled().await,
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

/// Why a peer could not be linked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoLink(pub(crate) String);

/// Links to a node at an address, sealed, and to nobody else that answers there. Takes at most 5 s. If
/// there is a link on the LAN by then, that one.
pub(crate) async fn dial_sealed(
    node: &Arc<Node>,
    address: SocketAddr,
    expects: &NodeId,
) -> Result<Arc<Link>, NoLink> {
    let peer = PeerId::Node(*expects);
    let linked = || node.peers.get(&peer)?.link_of(true).filter(|link| link.is_usable());
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
