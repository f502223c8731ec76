//! Opens a link to a peer that has none.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::NodeId;
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::{Wan, direct, relay::Relay};
use crate::{
    link::{Link, NoLink},
    peer::Peer,
};

/// The time limit for a link.
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// How long direct addresses are tried before mesh relays are.
const DIRECT_WITHIN: Duration = Duration::from_secs(2);

type ReachResult = Result<Arc<Link>, NoLink>;

/// The running attempts to link to peers. There is one for each peer, however many callers wait.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<NodeId, watch::Receiver<Option<ReachResult>>>>);

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, watch::Receiver<Option<ReachResult>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of the running attempt to link to a peer, or of one that begins now.
pub(super) async fn join(wan: &Arc<Wan>, peer: &Arc<Peer>, id: NodeId) -> ReachResult {
    let mut flight = flight(wan, peer, id);
    let stopped = || NoLink("this node stops".to_owned());
    let landed = flight.wait_for(Option::is_some).await.map_err(|_| stopped())?;
    landed.clone().unwrap_or_else(|| Err(stopped()))
}

fn flight(wan: &Arc<Wan>, peer: &Arc<Peer>, id: NodeId) -> watch::Receiver<Option<ReachResult>> {
    let mut flights = wan.flights.lock();
    // An attempt that was stopped stays in the map, but its sender is dropped.
    if let Some(flight) = flights.get(&id).filter(|flight| flight.has_changed().is_ok()) {
        return flight.clone();
    }
    let (land, flight) = watch::channel(None);
    flights.insert(id, flight.clone());
    drop(flights);
    let (own, peer) = (Arc::clone(wan), Arc::clone(peer));
    // The attempt has a task of its own, since the caller that began it may stop waiting before
    // other callers do.
    wan.machine.tasks.spawn(async move {
        let reaching = reach(&own, &peer, id);
        let reached = own.machine.stop.run_until_cancelled(reaching).await;
        // Removed before the result is sent, so that a later caller does not find an attempt that
        // has ended.
        own.flights.lock().remove(&id);
        if let Some(reached) = reached {
            // The callers may have stopped waiting.
            let _ = land.send(Some(reached));
        }
    });
    flight
}

/// Opens a link: directly if a known address answers, and otherwise through a mesh relay that lists
/// the peer.
async fn reach(wan: &Arc<Wan>, peer: &Arc<Peer>, id: NodeId) -> ReachResult {
    let until = Instant::now() + REACHED_WITHIN;
    if let Ok(Some(link)) = timeout(DIRECT_WITHIN, direct::reach(wan, &id)).await {
        return Ok(link);
    }
    if let Some(link) = peer.link() {
        return Ok(link);
    }
    let relays = wan.listing(peer);
    let mut why = NoLink("no relay lists it".to_owned());
    for relay in relays {
        match timeout_at(until, relay.link(id)).await {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(no_link)) => why = at(&relay, &no_link.0),
            Err(_) => return Err(at(&relay, "it did not answer within 10 s")),
        }
    }
    Err(why)
}

fn at(relay: &Relay, why: &str) -> NoLink {
    NoLink(format!("relay {}: {why}", relay.host))
}
