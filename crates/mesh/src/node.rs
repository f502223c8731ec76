//! This machine among its peers: what runs, and where each message goes.
//!
//! - `homes`: the node as each of its parts sees it

use std::sync::{Arc, Weak};

use base::NodeId;
use bytes::Bytes;
use models::Library;
use protocol::{
    mesh::{
        ClusterMessage,
        cluster::{
            BadMessage, ErrorCode, FailedRequest, Hello, InferenceError, ModelLoadError,
            ModelQueryResponse, ModelTransferError, Piece, decode,
        },
    },
    via::Marks,
};
use scheduler::Scheduler;
use seal::{Identity, PasscodeKey};
use store::UsageStore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    catalog::{self, Catalog},
    counts::Counts,
    facts::Facts,
    inbound::Inbound,
    lan::{self, Lan, tie},
    link::{Link, LinkClosed},
    own::Own,
    parcels::{PARCEL, Parcels},
    peer::{Peer, PeerFacts, Peers},
    provider::Seats,
    settings::Settings,
    transfer::Transfers,
    wan::{self, Relays},
};

mod homes;

/// The mesh as others hold it.
#[derive(Clone)]
pub struct Mesh(pub(crate) Arc<Node>);

/// This machine among its peers.
pub(crate) struct Node {
    pub(crate) own: Arc<Own>,
    pub(crate) scheduler: Scheduler,
    pub(crate) peers: Peers,
    /// The places of peers at the scheduler.
    pub(crate) seats: Seats,
    /// The requests of peers.
    pub(crate) inbound: Inbound,
    pub(crate) transfers: Transfers,
    /// Which models peers pass on.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) relays: Arc<Relays>,
    pub(crate) parcels: Parcels,
    /// The state that all links on the local network share.
    pub(crate) lan: Lan,
}

/// The parts of a mesh beside its settings.
pub struct Parts {
    /// This machine's identity.
    pub identity: Identity,
    /// Made of the passcode, if there is one.
    pub psk: Option<PasscodeKey>,
    /// Gets the requests of peers as jobs, and gives jobs to peers.
    pub scheduler: Scheduler,
    /// The ledger, for the daily limits of peers.
    pub usage: Arc<dyn UsageStore>,
    /// The models that are offered.
    pub library: Arc<Library>,
    /// The marks of this server.
    pub marks: Marks,
}

impl Mesh {
    /// A mesh that takes no part yet.
    pub fn new(settings: Settings, parts: Parts) -> Self {
        let Parts { identity, psk, scheduler, usage, library, marks } = parts;
        let identity = Arc::new(identity);
        let inbound = Inbound::new(settings.share.clone(), scheduler.clone(), usage, marks);
        let facts = Facts::new(&settings, identity.node_id(), scheduler.clone(), inbound.lent());
        let tasks = TaskTracker::new();
        let catalog = Arc::new(Catalog::new(Arc::clone(&library)));
        let transfers = Transfers::new(&settings, library);
        let lan = Lan::new(settings.passcode.as_ref());
        let own = Arc::new(Own {
            settings,
            identity,
            psk,
            facts,
            counts: Counts::default(),
            tasks: tasks.clone(),
            stop: CancellationToken::new(),
        });
        Self(Arc::new_cyclic(|node: &Weak<Node>| Node {
            own,
            peers: Peers::default(),
            seats: Seats::new(scheduler.clone(), tasks, Weak::<Node>::clone(node)),
            inbound,
            transfers,
            catalog,
            relays: Arc::default(),
            parcels: Parcels::default(),
            lan,
            scheduler,
        }))
    }

    /// This machine's id.
    pub fn id(&self) -> NodeId {
        self.0.own.id()
    }

    /// Takes part until `stop`: listens, looks for peers, keeps its links. At the end it says goodbye to peers.
    pub async fn run(self, stop: CancellationToken, listener: Option<tokio::net::TcpListener>) {
        let node = self.0;
        let own = Arc::clone(&node.own);
        if let Some(bound) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
            own.facts.listens(bound);
        }
        // Slow readings of the hardware are announced later, so that peers find this machine at once.
        stop.run_until_cancelled(own.facts.detect()).await;
        let looking = Arc::clone(&own);
        own.tasks.spawn(async move { looking.facts.keep_looking(&looking.stop).await });
        let lan = own.tasks.spawn(lan::run(Arc::new(Arc::clone(&node)), listener));
        let (home, relays) = (Arc::new(Arc::clone(&node)), Arc::clone(&node.relays));
        let relays = own.tasks.spawn(wan::run(home, Arc::clone(&own), relays));
        stop.cancelled().await;
        own.stop.cancel();
        node.seats.close();
        for task in [lan, relays] {
            // A task that panicked has nothing left to say goodbye to.
            let _ = task.await;
        }
        own.tasks.close();
        own.tasks.wait().await;
    }
}

impl Node {
    /// Handles a greeted link. `hello` is the other end's description of itself; relay sessions of stock
    /// peers begin without one.
    pub(crate) fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>) {
        let own = self.own.id();
        let tie = |old: &Link, new: &Link| tie::newer_stays(&own, old, new);
        let Some((peer, loser)) = self.peers.link(link, tie) else {
            return link.close("too many peers are known");
        };
        if let Some(loser) = loser {
            loser.close(tie::LOST);
            if loser.number == link.number {
                return;
            }
        }
        if let Some(hello) = hello {
            peer.learn(|facts| facts.greeted(hello));
        }
        tracing::info!(peer = %link.peer.short(), %link, sealed = link.sealed, "a peer is linked");
        self.seats.refresh(&peer);
    }

    /// A link has ended, and why.
    pub(crate) fn closed(&self, link: &Arc<Link>, why: &str) {
        link.close(why);
        let why = link.why_closed().unwrap_or_default();
        tracing::info!(peer = %link.peer.short(), %link, why, "a peer's link has ended");
        if let Some(peer) = self.peers.get(&link.peer) {
            peer.take_link(link.number);
            if peer.link().is_none() {
                peer.learn(PeerFacts::unlinked);
            }
            self.seats.refresh(&peer);
        }
        self.seats.link_closed(link);
        self.inbound.link_closed(link);
        self.transfers.link_closed(link);
        self.parcels.link_closed(link);
        self.peers.forget(&link.peer);
    }

    /// A payload came over a link: a message, a piece of a model, or a parcel.
    pub(crate) fn received(self: &Arc<Self>, link: &Arc<Link>, payload: Bytes) {
        if let Some(peer) = self.peers.get(&link.peer) {
            peer.heard();
        }
        match payload.first() {
            Some(1 | 2) if link.sealed => match Piece::decode(payload) {
                Some(piece) => self.transfers.piece(link, &piece),
                None => self.own.counts.bad("a piece that is none"),
            },
            Some(&PARCEL) if link.sealed => self.parcels.received(link, payload),
            _ => match decode(&payload) {
                Ok(decoded) => self.message(link, decoded.message),
                Err(bad) => self.bad(link, bad),
            },
        }
    }

    fn message(self: &Arc<Self>, link: &Arc<Link>, message: ClusterMessage) {
        use ClusterMessage as M;
        match message {
            // One that comes again is answered again: stock peers may have lost the first.
            M::Hello(hello) => self.greeted(link, &hello, true),
            M::HelloAck(hello) => self.greeted(link, &hello, false),
            M::Heartbeat(heartbeat) => {
                self.learn(link, |facts| facts.beat(&heartbeat));
                self.tell(link, &M::HeartbeatAck(Box::new(self.own.facts.heartbeat())));
            }
            M::HeartbeatAck(heartbeat) => self.learn(link, |facts| facts.beat(&heartbeat)),
            M::InferenceRequest(request) => {
                let greeted = self.peers.get(&link.peer).is_some_and(|peer| peer.facts().greeted);
                self.inbound.request(&self.own, link, greeted, request);
            }
            M::InferenceCancel(cancel) => self.inbound.cancel(link, &cancel.request_id),
            M::InferenceChunk(_) | M::InferenceComplete(_) | M::InferenceError(_) => {
                self.seats.answered(link, message);
            }
            M::LoadModel(load) => {
                let reason = "not_swappable: this node loads no models on request".to_owned();
                let (request_id, model_id) = (load.request_id, load.model_id);
                self.tell(
                    link,
                    &M::ModelLoadError(ModelLoadError { request_id, model_id, reason }),
                );
            }
            M::ModelLoaded(_) | M::ModelLoadError(_) => {
                self.own.counts.bad("an answer nobody asked for");
            }
            M::ModelListRequest(request) => {
                catalog::answer(&self.catalog, &self.own, link, request.request_id);
            }
            M::ModelList(list) => self.catalog.listed(link, list),
            message => self.transfers.message(&self.transfer_home(), link, message),
        }
    }

    fn greeted(&self, link: &Arc<Link>, hello: &Hello, answer: bool) {
        self.learn(link, |facts| facts.greeted(hello));
        if answer {
            let own = self.own.facts.hello(link.sealed);
            self.tell(link, &ClusterMessage::HelloAck(Box::new(own)));
        }
    }

    fn learn(&self, link: &Link, change: impl FnOnce(&mut crate::peer::PeerFacts)) {
        let Some(peer) = self.peers.get(&link.peer) else { return };
        peer.learn(change);
        self.refresh(&peer);
    }

    /// A peer has changed.
    pub(crate) fn refresh(&self, peer: &Arc<Peer>) {
        self.seats.refresh(peer);
    }

    /// A message that makes no sense: logged, counted, and answered where it asked something.
    fn bad(&self, link: &Arc<Link>, bad: BadMessage) {
        self.own.counts.bad(&bad.kind);
        tracing::warn!(peer = %link.peer.short(), %bad, "a message of a peer was not understood");
        let why = bad.to_string();
        let answer = match bad.asked {
            None => return,
            Some(FailedRequest::Nothing(request_id)) => {
                return self.seats.garbled(link, &request_id, &why);
            }
            Some(FailedRequest::Inference(request_id)) => {
                ClusterMessage::InferenceError(InferenceError {
                    request_id,
                    error_message: why,
                    code: Some(ErrorCode::InternalError),
                    status: None,
                    body: None,
                })
            }
            Some(FailedRequest::Model(model_id)) => {
                ClusterMessage::ModelQueryResponse(ModelQueryResponse {
                    model_id,
                    available: false,
                    total_size_bytes: None,
                })
            }
            Some(FailedRequest::Transfer(transfer_id)) => {
                let error_message = why;
                let error = ModelTransferError { transfer_id, error_message };
                ClusterMessage::ModelTransferError(error)
            }
            Some(FailedRequest::Load(request_id, model_id)) => {
                ClusterMessage::ModelLoadError(ModelLoadError { request_id, model_id, reason: why })
            }
        };
        self.tell(link, &answer);
    }

    /// Says something small; a link that is closed is found closed by its own task.
    fn tell(&self, link: &Link, message: &ClusterMessage) {
        let _: Result<(), LinkClosed> = link.tell(message);
    }
}
