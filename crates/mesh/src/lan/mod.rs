//! Links over TCP on the local network.
//!
//! - `open`: connections that become links
//! - `keep`: keeps a link to one peer for as long as it is wanted
//! - `find`: announces this machine, and finds others
//! - `sightings`: the peers that mDNS has shown
//! - `handshake`: how a link begins
//! - `pump`: a link's bytes, both ways
//! - `frames`: frames over a connection
//! - [`tie`]: which of two links between the same two nodes stays
//! - `sealed_peers`: peers that had a sealed link; `unlinked`: peers that were met and have no link
//! - `limits`: bounds on connections and links

use std::{
    net::SocketAddr,
    sync::{Arc, Weak, atomic::AtomicU64},
    time::Duration,
};

use base::NodeId;
use rand::RngExt;
use tokio::{net::TcpListener, task::JoinSet, time::timeout};

use self::{
    handshake::Call,
    keep::{PeerAddress, Target},
    limits::Limits,
    sealed_peers::SealedPeers,
    unlinked::UnlinkedPeers,
};
use crate::{
    link::{Link, LinkEvents, NoLink},
    peer::{PeerId, Peers},
    this_machine::ThisMachine,
};

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
mod unlinked;

/// The time limit for linking to a node at one address.
const DIRECT: Duration = Duration::from_secs(5);

/// The state that all links on the local network share.
pub(crate) struct Lan {
    machine: Arc<ThisMachine>,
    peers: Arc<Peers>,
    /// Weak, since the node owns this.
    events: Weak<dyn LinkEvents>,
    /// A random number that distinguishes a link back to this process from a link to another
    /// process with this node's key.
    instance: u64,
    /// Counts the connections that were begun.
    dials: AtomicU64,
    /// The passcode as stock peers hash it.
    hash: Option<String>,
    sealed_peers: SealedPeers,
    limits: Arc<Limits>,
    pub(crate) unlinked: UnlinkedPeers,
}

impl Lan {
    pub(crate) fn new(
        machine: Arc<ThisMachine>,
        peers: Arc<Peers>,
        events: Weak<dyn LinkEvents>,
    ) -> Self {
        let passcode = machine.settings.passcode.as_ref();
        Self {
            instance: rand::rng().random(),
            dials: AtomicU64::new(1),
            hash: passcode.and_then(|passcode| seal::stock_hash(passcode.expose())),
            sealed_peers: SealedPeers::default(),
            limits: Arc::default(),
            unlinked: UnlinkedPeers::default(),
            machine,
            peers,
            events,
        }
    }
}

/// Listens, announces this machine, looks for others and keeps a link to each, until the node stops.
pub(crate) async fn run(lan: Arc<Lan>, listener: Option<TcpListener>) {
    let (settings, stop) = (&lan.machine.settings, &lan.machine.stop);
    let bound = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let announced =
        bound.filter(|_| settings.advertise).and_then(|bound| find::announce(&lan, bound));
    let mut running = JoinSet::new();
    for peer in &settings.peers {
        running.spawn(keep::keep(Arc::clone(&lan), named(peer)));
    }
    if settings.advertise {
        running.spawn(find::look(Arc::clone(&lan)));
    }
    match listener {
        Some(listener) => _ = stop.run_until_cancelled(open::listen(&lan, &listener)).await,
        None => stop.cancelled().await,
    }
    running.shutdown().await;
    if let Some(announced) = announced {
        announced.stop().await;
    }
}

fn named(peer: &str) -> Target {
    let address = PeerAddress::Named(peer.to_owned());
    Target { name: peer.to_owned(), address, expects: None, peer: None, wait: Duration::ZERO }
}

/// The LAN link to a node: the present one, or a new one to this address. Another node that answers
/// there is refused. Takes at most 5 s.
///
/// # Errors
/// [`NoLink`], in words for people.
pub(crate) async fn dial_sealed(
    lan: &Arc<Lan>,
    address: SocketAddr,
    expects: &NodeId,
) -> Result<Arc<Link>, NoLink> {
    let peer = PeerId::Node(*expects);
    let linked = || lan.peers.get(&peer)?.link_of(true).filter(|link| link.is_usable());
    if let Some(link) = linked() {
        return Ok(link);
    }
    let call = Call { address: Some(address), expects: Some(*expects), with_hash: false };
    let failure = match timeout(DIRECT, open::dial(lan, call)).await {
        Ok(Ok(link)) if !link.is_closed() => return Ok(link),
        // Another link between the two nodes may have replaced it meanwhile: see `tie`.
        Ok(Ok(link)) => link.why_closed().unwrap_or_default(),
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "it took too long".to_owned(),
    };
    linked().ok_or_else(|| NoLink(format!("no direct link to {}: {failure}", expects.short())))
}

#[cfg(test)]
mod tests;
