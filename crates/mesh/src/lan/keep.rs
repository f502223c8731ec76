//! Keeps a link to one peer for as long as it is wanted.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base::{Backoff, NodeId};
use tokio::{
    net::lookup_host,
    sync::watch,
    time::{Instant, sleep, timeout},
};
use wire::dial::jitter;

use super::{
    Lan,
    handshake::{Call, Failure},
    open::{dial, report},
};
use crate::peer::PeerId;

/// After a link that lasted this long, the delays start over.
const GOOD: Duration = Duration::from_secs(30);

/// The time limit for resolving a name.
const RESOLVED: Duration = Duration::from_secs(5);

/// The most addresses of one peer that are tried.
const MAX_ADDRESSES: usize = 8;

/// How often to check whether a peer still has its link, in case no notice comes.
const LOOK: Duration = Duration::from_secs(5);

/// The addresses of a peer.
#[derive(Debug, Clone)]
pub(super) enum PeerAddress {
    /// HOST:PORT, resolved again at each try.
    Named(String),
    /// As found by mDNS; they may change.
    Found(watch::Receiver<Vec<SocketAddr>>),
}

/// A peer to link to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The name for people.
    pub(super) name: String,
    pub(super) address: PeerAddress,
    /// A Warren that is expected there.
    pub(super) expects: Option<NodeId>,
    /// Its id, if known before the greeting.
    pub(super) peer: Option<PeerId>,
    /// How long this node waits for it to connect first.
    pub(super) wait: Duration,
}

/// Keeps a link to a peer; ends only if the address leads to this process.
pub(super) async fn keep(lan: Arc<Lan>, mut target: Target) {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
    let mut reported = String::new();
    sleep(target.wait).await;
    loop {
        unlinked(&lan, target.peer.as_ref()).await;
        match target.link(&lan).await {
            Ok((peer, lasted)) => {
                // From now on a link that the peer opens counts, too.
                target.peer = Some(peer);
                reported.clear();
                if lasted >= GOOD {
                    backoff.reset();
                }
            }
            Err(Failure::Myself) => return,
            Err(failure) => {
                let words = failure.to_string();
                lan.unlinked.failed(&target.name, &words);
                // Reported once, and not at each try.
                if words != reported {
                    let named = matches!(target.address, PeerAddress::Named(_));
                    report(&lan, &target.name, named, &failure);
                    reported = words;
                }
            }
        }
        sleep(target.wait + backoff.next(jitter())).await;
    }
}

/// Waits until a peer has no link on the LAN.
async fn unlinked(lan: &Lan, peer: Option<&PeerId>) {
    let Some(id) = peer else { return };
    while let Some(peer) = lan.peers.get(id)
        && peer.link_of(true).is_some_and(|link| !link.is_closed())
    {
        // A peer that was forgotten and met again is another object, and its notices do not come
        // here.
        let _ = timeout(LOOK, peer.changed.notified()).await;
    }
}

impl Target {
    /// Links to the peer, and waits until the link has ended. Returns the peer, and how long the
    /// link lasted.
    async fn link(&self, lan: &Arc<Lan>) -> Result<(PeerId, Duration), Failure> {
        let mut failure = Failure::NoAnswer;
        for address in self.addresses().await? {
            let call = Call { address: Some(address), expects: self.expects, with_hash: false };
            match dial(lan, call).await {
                Ok(link) => {
                    let since = Instant::now();
                    lan.unlinked.linked(&self.name);
                    link.closed().await;
                    return Ok((link.peer.clone(), since.elapsed()));
                }
                Err(Failure::Myself) => return Err(Failure::Myself),
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let name = match &self.address {
            PeerAddress::Found(addresses) => return Ok(addresses.borrow().clone()),
            PeerAddress::Named(name) => name,
        };
        let resolving = timeout(RESOLVED, lookup_host(name.as_str())).await;
        let found = resolving.map_err(|_| Failure::Name(name.clone(), "no answer".to_owned()))?;
        let found = found.map_err(|error| Failure::Name(name.clone(), error.to_string()))?;
        Ok(found.take(MAX_ADDRESSES).collect())
    }
}
