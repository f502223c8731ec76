//! Jobs of ours that peers answer.
//!
//! To the dispatcher a peer is one provider, whatever link leads to it: when a relay session gives way
//! to a link on the LAN, only its distance changes.
//!
//! - `wanted`: what a peer is to the dispatcher now
//! - `seat`: the place of one peer, `state`: the jobs that it has
//! - `sender`: what the scheduler tells a peer's place
//! - `peer_job`: one job at a peer
//! - `request`: a job as a message
//! - `reply`: the chunks of an answer as a client gets them
//! - `home`: the node, as these see it
//! - `fate`: what becomes of a job that a peer does not answer

mod fate;
mod home;
mod peer_job;
mod reply;
mod request;
mod seat;
mod sender;
mod state;
#[cfg(test)]
mod tests;
mod wanted;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use protocol::mesh::{ClusterMessage, WireId};
use scheduler::Scheduler;
use tokio_util::task::TaskTracker;

pub(crate) use self::home::Home;
use self::{seat::Seat, wanted::Wanted};
use crate::{
    link::Link,
    peer::{Peer, PeerId},
};

/// The places of peers at the scheduler.
pub(crate) struct Seats {
    shared: Arc<Shared>,
    seats: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    by_peer: HashMap<PeerId, Arc<Seat>>,
    /// No peer is given anything any more.
    closed: bool,
}

/// The state that all places share.
pub(super) struct Shared {
    scheduler: Scheduler,
    /// Opens links through relays; gone when the mesh is.
    node: Weak<dyn Home>,
    tasks: TaskTracker,
    /// Messages about requests that nobody waits for.
    late: AtomicU64,
}

impl Shared {
    fn may_ask(&self, peer: &Peer) -> bool {
        self.node.upgrade().is_none_or(|node| node.may_ask(peer))
    }

    /// The link that something can be asked over, if there is one.
    fn link(&self, peer: &Peer) -> Option<Arc<Link>> {
        let may = |link: &Arc<Link>| self.node.upgrade().is_none_or(|node| node.may_ask_over(link));
        peer.link().filter(may)
    }
}

impl Seats {
    /// Places at `scheduler`; their tasks are among `tasks`.
    pub(crate) fn new(scheduler: Scheduler, tasks: TaskTracker, node: Weak<dyn Home>) -> Self {
        let shared = Shared { scheduler, node, tasks, late: AtomicU64::new(0) };
        Self { shared: Arc::new(shared), seats: Mutex::default() }
    }

    /// A peer or its links have changed: it joins, leaves, or makes another offer.
    pub(crate) fn refresh(&self, peer: &Arc<Peer>) {
        let mut places = self.lock();
        let wanted = Wanted::of(peer).filter(|_| self.shared.may_ask(peer));
        if let Some(seat) = places.by_peer.get(&peer.id) {
            if !seat.adjust(wanted) {
                places.by_peer.remove(&peer.id);
            }
        } else if let Some(wanted) = wanted.filter(Wanted::is_worth_a_seat)
            && !places.closed
        {
            let seat = Seat::join(&self.shared, peer, wanted);
            places.by_peer.insert(peer.id.clone(), seat);
        }
    }

    /// A chunk, an end or an error of an answer.
    pub(crate) fn answered(&self, link: &Arc<Link>, message: ClusterMessage) {
        let seat = self.lock().by_peer.get(&link.peer).cloned();
        if !seat.is_some_and(|seat| seat.answered(link, message)) {
            // Stock peers go on with what nobody wants any more.
            let late = self.shared.late.fetch_add(1, Ordering::Relaxed);
            if late.is_power_of_two() || late == 0 {
                tracing::debug!(peer = %link.peer.short(), late, "an answer that nobody waits for");
            }
        }
    }

    /// A part of an answer came that makes no sense.
    pub(crate) fn garbled(&self, link: &Arc<Link>, request: &WireId, why: &str) {
        let seat = self.lock().by_peer.get(&link.peer).cloned();
        if let Some(seat) = seat {
            seat.garbled(link, request, why);
        }
    }

    /// A link has ended: requests over it get no answer.
    pub(crate) fn link_closed(&self, link: &Arc<Link>) {
        let seat = self.lock().by_peer.get(&link.peer).cloned();
        if let Some(seat) = seat {
            seat.link_closed(link);
        }
    }

    /// Every peer leaves, and none joins again.
    pub(crate) fn close(&self) {
        let mut places = self.lock();
        places.closed = true;
        for (_, seat) in places.by_peer.drain() {
            seat.adjust(None);
        }
    }

    /// How many messages came about requests that nobody waited for.
    pub(crate) fn late(&self) -> u64 {
        self.shared.late.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
