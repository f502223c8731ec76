//! This server's jobs that peers answer.
//!
//! To the dispatcher a peer is one provider over all its links: when a relay session gives way
//! to a link on the LAN, only its distance changes.
//!
//! - `status`: what a peer offers the dispatcher now
//! - `peer_provider`: one peer as a provider; `state`: its membership and its jobs
//! - `sender`: the scheduler's calls, queued for the provider's task
//! - `peer_job`: one job at a peer
//! - `request`: a job as a message
//! - `reply`: the chunks of an answer as the client gets them
//! - `fate`: the outcome of a job that a peer does not answer

mod fate;
mod peer_job;
mod peer_provider;
mod reply;
mod request;
mod sender;
mod state;
mod status;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use protocol::mesh::{ClusterMessage, WireId};
use scheduler::Scheduler;

use self::{peer_provider::PeerProvider, status::PeerStatus};
use crate::{
    inbound::Inbound,
    link::Link,
    peer::{Peer, PeerId},
    this_machine::ThisMachine,
    wan::Wan,
};

/// The peers that are providers of the scheduler.
pub(crate) struct PeerProviders {
    shared: Arc<Shared>,
    list: Mutex<ProviderList>,
}

#[derive(Default)]
struct ProviderList {
    by_peer: HashMap<PeerId, Arc<PeerProvider>>,
    /// Set when the mesh stops: from then on no peer joins.
    closed: bool,
}

/// The state that all of them share.
struct Shared {
    machine: Arc<ThisMachine>,
    scheduler: Scheduler,
    /// Opens links to peers that have none.
    wan: Arc<Wan>,
    /// Knows over which links requests of peers are being answered.
    inbound: Arc<Inbound>,
    /// The number of messages about requests for which no job waits.
    late: AtomicU64,
}

impl PeerProviders {
    pub(crate) fn new(
        machine: Arc<ThisMachine>,
        scheduler: Scheduler,
        wan: Arc<Wan>,
        inbound: Arc<Inbound>,
    ) -> Self {
        let shared = Shared { machine, scheduler, wan, inbound, late: AtomicU64::new(0) };
        Self { shared: Arc::new(shared), list: Mutex::default() }
    }

    /// Handles a change of a peer or its links: it joins the scheduler, leaves it, or changes its
    /// offer.
    pub(crate) fn refresh(&self, peer: &Arc<Peer>) {
        // Held to the end. Otherwise two calls for one peer could make two providers of it.
        let mut list = self.lock();
        let status = PeerStatus::of(peer).filter(|_| self.shared.machine.may_ask(peer));
        if let Some(provider) = list.by_peer.get(&peer.id) {
            if !provider.update(status) {
                list.by_peer.remove(&peer.id);
            }
        } else if let Some(status) = status.filter(PeerStatus::is_serving)
            && !list.closed
        {
            let provider = PeerProvider::join(&self.shared, peer, status);
            list.by_peer.insert(peer.id.clone(), provider);
        }
    }

    /// Handles a chunk, an end or an error of an answer.
    pub(crate) fn answered(&self, link: &Arc<Link>, message: ClusterMessage) {
        let provider = self.get(&link.peer);
        if !provider.is_some_and(|provider| provider.answered(link, message)) {
            // Stock peers go on sending answers that are no longer wanted. A log line for each
            // would fill the log.
            let late = self.shared.late.fetch_add(1, Ordering::Relaxed);
            if late.is_power_of_two() || late == 0 {
                tracing::debug!(peer = %link.peer.short(), late, "an answer that nobody waits for");
            }
        }
    }

    /// Handles a part of an answer that makes no sense.
    pub(crate) fn garbled(&self, link: &Arc<Link>, request: &WireId, why: &str) {
        if let Some(provider) = self.get(&link.peer) {
            provider.garbled(link, request, why);
        }
    }

    /// Handles the end of a link: requests that were sent over it get no answer.
    pub(crate) fn link_closed(&self, link: &Arc<Link>) {
        if let Some(provider) = self.get(&link.peer) {
            provider.link_closed(link);
        }
    }

    /// Every peer leaves the scheduler, and none joins it again.
    pub(crate) fn close(&self) {
        let mut list = self.lock();
        list.closed = true;
        for (_, provider) in list.by_peer.drain() {
            provider.update(None);
        }
    }

    /// How many messages came about requests for which no job waited.
    pub(crate) fn late(&self) -> u64 {
        self.shared.late.load(Ordering::Relaxed)
    }

    /// Cloned, so that the list's lock is not held while an answer is handled.
    fn get(&self, peer: &PeerId) -> Option<Arc<PeerProvider>> {
        self.lock().by_peer.get(peer).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, ProviderList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
