//! Sessions that move from one member of the cluster to another. This drives the machines of both
//! ends, which are in `replica::handover`.
//!
//! - [`Moves`]: all moves of this machine
//! - `departure`: the sessions that are given away; `mover`: carries out such a move; `request`: the
//!   client's request for it
//! - `arrival`: the sessions that come; `receiving`: the circuit by which they come
//! - `talk`: a circuit to the other end

mod arrival;
mod departure;
mod mover;
mod receiving;
mod request;
mod talk;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cluster::Cluster;
use protocol::workspace::SessionId;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use workspace::Refusal;

use self::{arrival::IncomingMove, departure::OutgoingMove};
pub(crate) use self::{receiving::MoveHost, request::move_session};
use crate::{membership::Server, policy::Target, services::Services};

/// The most moves to this machine, and the most from it, that are not over.
const MOST: usize = 32;
/// How long a request waits for a session that comes, and how often it looks.
const COMING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// The interval of checks of moves that are not over.
const ROUND: Duration = Duration::from_secs(3);

/// The moves of this machine.
#[derive(Default)]
pub(crate) struct Moves {
    outgoing: Mutex<BTreeMap<SessionId, Arc<OutgoingMove>>>,
    incoming: Mutex<BTreeMap<SessionId, Arc<IncomingMove>>>,
    /// Cancelled when the membership ends, or another one begins.
    membership: Mutex<CancellationToken>,
}

impl Moves {
    /// Whether a session moves here. The cluster may name this member as its owner before it runs.
    pub(crate) fn is_coming(&self, id: SessionId) -> bool {
        self.incoming().get(&id).is_some_and(|incoming| incoming.is_coming())
    }

    /// Ends the tasks of the membership.
    pub(crate) fn leave(&self) {
        self.renew();
    }

    fn outgoing(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<OutgoingMove>>> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn incoming(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<IncomingMove>>> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token for the tasks of this membership; those of an earlier one end.
    fn renew(&self) -> CancellationToken {
        let mut membership = self.membership.lock().unwrap_or_else(PoisonError::into_inner);
        membership.cancel();
        *membership = CancellationToken::new();
        membership.clone()
    }
}

/// Restores the moves of an earlier start. This machine must not announce its sessions before.
pub(crate) async fn restore(services: &Arc<Services>, cluster: &Cluster) {
    arrival::restore(services).await;
    departure::restore(services, cluster).await;
}

/// Looks after the sessions that come.
pub(crate) fn begin(services: &Arc<Services>, cluster: &Cluster, closing: CancellationToken) {
    let token = services.moves.renew();
    let (services, cluster) = (Arc::clone(services), cluster.clone());
    let going = async move {
        loop {
            arrival::look_at_all(&services, &cluster).await;
            sleep(ROUND).await;
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            () = going => {}
            () = token.cancelled() => {}
            () = closing.cancelled() => {}
        }
    });
}

/// Waits until a session that comes here runs, so that requests for it find it.
///
/// # Errors
/// When the session has left meanwhile.
pub(crate) async fn ready(services: &Services, target: &Target) -> Result<(), Refusal> {
    let Target::Session(id) = target else { return Ok(()) };
    if services.sessions.has(*id) {
        return Ok(());
    }
    let until = Instant::now() + COMING;
    while services.moves.is_coming(*id) && Instant::now() < until {
        sleep(LOOK).await;
    }
    match services.membership.server_of(target, services) {
        Ok(Server::Member(node)) => {
            let cluster = services.membership.cluster();
            let name = cluster.map(|cluster| cluster.name_of(&node)).unwrap_or(node);
            let words = format!("the session has just moved to {name}: send it again");
            Err(Refusal::Invalid(words))
        }
        _ => Ok(()),
    }
}

/// Takes a staged session in the background, because the cluster names this member as its owner.
pub(crate) fn look(services: &Arc<Services>, cluster: &Cluster, id: SessionId) {
    let Some(incoming) = services.moves.incoming().get(&id).cloned() else { return };
    let (services, cluster) = (Arc::clone(services), cluster.clone());
    tokio::spawn(async move { incoming.look(&services, &cluster).await });
}
