//! Requests of peers that this machine answers.
//!
//! Each becomes a job that counts towards the peer's limits, and that no second peer may get. A
//! task for each reads the answer and sends it to the peer as fast as the peer reads.
//!
//! - `request`: a message as a job for one of the models here
//! - `meter`: the usage of an answer, shared with the scheduler
//! - `answer`: passes a job's answer from the exchange to the link
//! - `chunks`: a backend's answer as chunks of the mesh protocol
//! - `refusal`: errors for a peer whose request gets no answer

mod answer;
mod chunks;
mod meter;
mod refusal;
mod request;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

use protocol::{
    mesh::{
        WireId,
        cluster::{ErrorCode, InferenceRequest},
    },
    via::Marks,
};
use scheduler::Scheduler;
use store::{UsageQuery, UsageStore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use crate::{
    link::{Carrier, Link},
    peer::PeerId,
    share::{Asker, Gate, MachineLoad, Moment, Refusal, Share},
    this_machine::ThisMachine,
};

/// The most requests that run over one link at once.
const MAX_RUNNING: usize = 1_024;

/// The most bytes of requests that are held for all peers at once.
const MAX_HELD: usize = 256 * 1024 * 1024;

/// The requests of peers.
pub(crate) struct Inbound {
    shared: Arc<Shared>,
    running: Arc<RunningRequests>,
}

/// The state that every request's task needs.
struct Shared {
    scheduler: Scheduler,
    marks: Marks,
    share: Share,
    usage: Arc<dyn UsageStore>,
    gate: Mutex<Gate>,
    /// The number of requests that the gate has admitted. It is separate, for readers that must not
    /// wait for the gate's lock.
    lent: Arc<AtomicU32>,
    /// Bytes of requests that are held.
    held: AtomicUsize,
}

/// The running requests, by the number of their link and their id. Cancelling a token stops one.
#[derive(Default)]
struct RunningRequests(Mutex<HashMap<u64, HashMap<WireId, CancellationToken>>>);

impl Inbound {
    pub(crate) fn new(
        share: Share,
        scheduler: Scheduler,
        usage: Arc<dyn UsageStore>,
        marks: Marks,
    ) -> Self {
        let shared = Shared {
            scheduler,
            marks,
            gate: Mutex::new(Gate::new(share.clone())),
            share,
            usage,
            lent: Arc::default(),
            held: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared), running: Arc::default() }
    }

    /// The number of peers' requests that are being answered. The counter stays up to date.
    pub(crate) fn lent(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.shared.lent)
    }

    /// Handles a request: a task of its own answers it, or it is refused at once. `greeted` says
    /// whether its peer has sent a hello.
    pub(crate) fn request(
        &self,
        machine: &Arc<ThisMachine>,
        link: &Arc<Link>,
        greeted: bool,
        request: InferenceRequest,
    ) {
        // Through a mesh relay anyone can send a request in clear text, so at least a hello is
        // required.
        let proved = link.proved && (link.sealed || is_lan(link) || greeted);
        let own = Arc::clone(machine);
        self.take(&machine.tasks, link, proved, request, move || own.facts.load());
    }

    /// As [`Inbound::request`]; `load` reads the load of this machine.
    fn take(
        &self,
        tasks: &TaskTracker,
        link: &Arc<Link>,
        proved: bool,
        request: InferenceRequest,
        load: impl FnOnce() -> MachineLoad + Send + 'static,
    ) {
        let id = request.request_id.clone();
        let stop = match self.begin(link, &request) {
            Ok(stop) => stop,
            Err(refusal) => return refusal.tell(link, id),
        };
        let running = RunningRequest { running: Arc::clone(&self.running), link: link.number, id };
        let (shared, link) = (Arc::clone(&self.shared), Arc::clone(link));
        let span =
            tracing::debug_span!(parent: &link.span, "mesh_request", request_id = %running.id);
        let answer = async move {
            let running = running;
            let answering = async {
                let pass = shared.admit(&link.peer, proved, link.sealed, load).await?;
                answer::answer(&shared, &link, request, &pass).await
            };
            match stop.run_until_cancelled(answering).await {
                // The peer has cancelled it, or its link has ended.
                None | Some(Ok(())) => {}
                Some(Err(refusal)) => refusal.say(&link, running.id.clone()).await,
            }
        };
        tasks.spawn(answer.instrument(span));
    }

    /// Stops a request whose answer the peer no longer wants.
    pub(crate) fn cancel(&self, link: &Arc<Link>, request: &WireId) {
        let running = self.running.lock();
        if let Some(stop) = running.get(&link.number).and_then(|of_link| of_link.get(request)) {
            stop.cancel();
        }
    }

    /// Stops the requests of a link that has ended.
    pub(crate) fn link_closed(&self, link: &Arc<Link>) {
        // The whole entry is removed. A request that ends a moment later finds nothing to remove.
        let of_link = self.running.lock().remove(&link.number);
        for (_, stop) in of_link.into_iter().flatten() {
            stop.cancel();
        }
    }

    /// Whether a request that came over this link is being answered.
    pub(crate) fn answers_on(&self, link: &Link) -> bool {
        self.running.lock().get(&link.number).is_some_and(|of_link| !of_link.is_empty())
    }

    /// Enters a request into the list of running ones, unless it is refused.
    fn begin(&self, link: &Link, request: &InferenceRequest) -> Result<CancellationToken, Refusal> {
        let refuse = |code, words: &str| Err(Refusal::new(code, words));
        // A request goes over one link only, so no request can go round in a circle of peers.
        if request.hops.is_some_and(|hops| hops > 1) {
            return refuse(
                ErrorCode::Unavailable,
                "the request has come through another peer already",
            );
        }
        let mut running = self.running.lock();
        let of_link = running.entry(link.number).or_default();
        if of_link.contains_key(&request.request_id) {
            return refuse(ErrorCode::InternalError, "a request of the same id is being answered");
        }
        if of_link.len() >= MAX_RUNNING {
            return refuse(ErrorCode::QueueFull, "too many requests are running over this link");
        }
        let stop = CancellationToken::new();
        of_link.insert(request.request_id.clone(), stop.clone());
        Ok(stop)
    }
}

impl RunningRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, HashMap<WireId, CancellationToken>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry in the list of running requests, removed when this is dropped.
struct RunningRequest {
    running: Arc<RunningRequests>,
    link: u64,
    id: WireId,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        if let Some(of_link) = running.get_mut(&self.link) {
            of_link.remove(&self.id);
            // Otherwise an entry would stay for each link that ever was.
            if of_link.is_empty() {
                running.remove(&self.link);
            }
        }
    }
}

/// An admitted request. It is settled at the gate when this is dropped, however it ends.
struct Pass {
    shared: Arc<Shared>,
    peer: PeerId,
    /// The usage of the answer so far.
    cost: meter::Cost,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let tokens = self.cost.tokens();
        let mut gate = self.shared.gate();
        gate.settle(Moment::now(), &self.peer, tokens);
        self.shared.lent.store(gate.running(), Ordering::Relaxed);
    }
}

impl Shared {
    async fn admit(
        self: &Arc<Self>,
        peer: &PeerId,
        proved: bool,
        sealed: bool,
        load: impl FnOnce() -> MachineLoad,
    ) -> Result<Pass, Refusal> {
        let asker = Asker { peer, proved, sealed };
        // Checked first, so that the ledger is not read for strangers.
        self.share.lets_in(asker)?;
        if self.gate().wants_used(peer) {
            self.read_usage(peer).await;
        }
        let load = load();
        let mut gate = self.gate();
        gate.admit(Moment::now(), asker, load)?;
        self.lent.store(gate.running(), Ordering::Relaxed);
        Ok(Pass { shared: Arc::clone(self), peer: peer.clone(), cost: meter::Cost::default() })
    }

    /// Asks the ledger what the peer has used today. If it cannot be read, nothing is assumed, and
    /// no peer is stopped by its daily limit.
    async fn read_usage(&self, peer: &PeerId) {
        let now = Moment::now();
        let (usage, key) = (Arc::clone(&self.usage), Some(request::key(peer)));
        let query = UsageQuery { since_ms: Some(now.midnight_ms()), key, ..UsageQuery::default() };
        let answer = tokio::task::spawn_blocking(move || usage.usage(&query)).await;
        let used = match answer {
            Ok(Ok(answer)) => answer.totals.total_tokens,
            _ => {
                let peer = peer.short();
                tracing::warn!(
                    peer,
                    "it cannot be read what a peer has used today: nothing is assumed"
                );
                0
            }
        };
        self.gate().used(now, peer, used);
    }

    /// Reserves `bytes` bytes for a request, if there is room.
    fn hold(self: &Arc<Self>, bytes: usize) -> Result<HeldBytes, Refusal> {
        // Made before the check, so that dropping it gives the bytes back if there is no room.
        let held = HeldBytes { shared: Arc::clone(self), bytes };
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MAX_HELD {
            let words = "this machine holds as many requests of peers as it can";
            return Err(Refusal::new(ErrorCode::QueueFull, words));
        }
        Ok(held)
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserved bytes, given back when this is dropped.
struct HeldBytes {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn is_lan(link: &Link) -> bool {
    matches!(link.carrier, Carrier::Lan(_))
}
