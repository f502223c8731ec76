//! This machine among its peers: what runs, and which part gets each message.

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
use tokio_util::sync::CancellationToken;

use crate::{
    catalog::{self, Catalog},
    inbound::Inbound,
    lan::{self, Lan, tie},
    link::{Carrier, Link, LinkClosed, LinkEvents},
    parcels::{PARCEL, Parcels},
    peer::{Peer, PeerFacts, Peers},
    provider::PeerProviders,
    settings::Settings,
    this_machine::ThisMachine,
    transfer::Transfers,
    wan::{self, Wan},
};

/// A handle to the mesh. Clones share it.
#[derive(Clone)]
pub struct Mesh(pub(crate) Arc<Node>);

/// This machine among its peers.
pub(crate) struct Node {
    pub(crate) machine: Arc<ThisMachine>,
    pub(crate) scheduler: Scheduler,
    pub(crate) peers: Arc<Peers>,
    /// The peers as providers of the scheduler.
    pub(crate) providers: PeerProviders,
    /// Answers the requests of peers.
    pub(crate) inbound: Arc<Inbound>,
    pub(crate) transfers: Transfers,
    /// The lists of models that peers pass on.
    pub(crate) catalog: Arc<Catalog>,
    /// Links on the local network.
    pub(crate) lan: Arc<Lan>,
    /// Links through mesh relays; also opens links to peers that have none.
    pub(crate) wan: Arc<Wan>,
    pub(crate) parcels: Parcels,
}

/// The parts that a mesh needs beside its settings.
pub struct Parts {
    /// This machine's identity.
    pub identity: Identity,
    /// Derived from the passcode, if there is one.
    pub psk: Option<PasscodeKey>,
    /// The scheduler that gets the requests of peers as jobs, and gives jobs to peers.
    pub scheduler: Scheduler,
    /// The ledger, for the daily limits of peers.
    pub usage: Arc<dyn UsageStore>,
    /// The models that are offered to peers.
    pub library: Arc<Library>,
    /// The marks of this server, by which a request that comes back is recognised.
    pub marks: Marks,
}

impl Mesh {
    /// A mesh that does not run yet.
    pub fn new(settings: Settings, parts: Parts) -> Self {
        let Parts { identity, psk, scheduler, usage, library, marks } = parts;
        let share = settings.share.clone();
        let inbound = Arc::new(Inbound::new(share, scheduler.clone(), usage, marks));
        let machine = ThisMachine::new(settings, identity, psk, scheduler.clone(), inbound.lent());
        let (machine, peers) = (Arc::new(machine), Arc::<Peers>::default());
        // Cyclic, since links report to the node that owns them.
        Self(Arc::new_cyclic(|node: &Weak<Node>| {
            let lan = Lan::new(Arc::clone(&machine), Arc::clone(&peers), node.clone());
            let lan = Arc::new(lan);
            let wan =
                Wan::new(Arc::clone(&machine), Arc::clone(&peers), Arc::clone(&lan), node.clone());
            let wan = Arc::new(wan);
            Node {
                providers: PeerProviders::new(
                    Arc::clone(&machine),
                    scheduler.clone(),
                    Arc::clone(&wan),
                    Arc::clone(&inbound),
                ),
                transfers: Transfers::new(
                    Arc::clone(&machine),
                    Arc::clone(&peers),
                    Arc::clone(&wan),
                    Arc::clone(&library),
                ),
                catalog: Arc::new(Catalog::new(library)),
                parcels: Parcels::default(),
                machine,
                scheduler,
                peers,
                inbound,
                lan,
                wan,
            }
        }))
    }

    /// This machine's id.
    pub fn id(&self) -> NodeId {
        self.0.machine.id()
    }

    /// Runs until `stop`: listens, looks for peers, and keeps its links. At the end it says goodbye
    /// to the peers.
    pub async fn run(self, stop: CancellationToken, listener: Option<tokio::net::TcpListener>) {
        let node = self.0;
        let machine = Arc::clone(&node.machine);
        if let Some(bound) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
            machine.facts.listens(bound);
        }
        // Before any link, since hellos and announcements contain the hardware. This may take seconds.
        stop.run_until_cancelled(machine.facts.detect()).await;
        let own = Arc::clone(&machine);
        machine.tasks.spawn(async move { own.facts.keep_reading(&own.stop).await });
        let lan = machine.tasks.spawn(lan::run(Arc::clone(&node.lan), listener));
        let wan = machine.tasks.spawn(wan::run(Arc::clone(&node.wan)));
        stop.cancelled().await;
        machine.stop.cancel();
        // Before the links end, so that jobs at peers move to other providers instead of failing.
        node.providers.close();
        for task in [lan, wan] {
            // If the task panicked, nothing is left to do.
            let _ = task.await;
        }
        machine.tasks.close();
        machine.tasks.wait().await;
    }
}

impl LinkEvents for Node {
    fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>) {
        self.take(link, hello);
        if let (Carrier::Relay(_), Some(warren), Some(peer)) =
            (&link.carrier, hello.and_then(|hello| hello.warren.as_ref()), link.peer.node())
        {
            self.wan.learn_addresses(peer, &warren.addresses, link);
        }
    }

    fn closed(&self, link: &Arc<Link>, why: &str) {
        link.close(why);
        let why = link.why_closed().unwrap_or_default();
        tracing::info!(peer = %link.peer.short(), %link, why, "a peer's link has ended");
        // Before anything else. If the peer leaves the scheduler with its last link, its jobs move
        // instead of failing.
        if let Some(peer) = self.peers.get(&link.peer) {
            peer.take_link(link.number);
            if peer.link().is_none() {
                peer.learn(PeerFacts::unlinked);
            }
            self.providers.refresh(&peer);
        }
        self.providers.link_closed(link);
        self.inbound.link_closed(link);
        self.transfers.link_closed(link);
        self.parcels.link_closed(link);
        self.peers.forget(&link.peer);
    }

    fn received(&self, link: &Arc<Link>, payload: Bytes) {
        if let Some(peer) = self.peers.get(&link.peer) {
            peer.heard();
        }
        // No JSON message begins with these bytes.
        match payload.first() {
            Some(1 | 2) if link.sealed => match Piece::decode(payload) {
                Some(piece) => self.transfers.piece(link, &piece),
                None => self.machine.counts.bad("a piece that is none"),
            },
            Some(&PARCEL) if link.sealed => self.parcels.received(link, payload),
            _ => match decode(&payload) {
                Ok(decoded) => self.message(link, decoded.message),
                Err(bad) => self.bad(link, bad),
            },
        }
    }

    fn changed(&self, peer: &Arc<Peer>) {
        self.providers.refresh(peer);
    }
}

impl Node {
    /// Makes a greeted link its peer's link. Of two links between the same nodes one is closed.
    fn take(&self, link: &Arc<Link>, hello: Option<&Hello>) {
        let own = self.machine.id();
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
        self.providers.refresh(&peer);
    }

    fn message(&self, link: &Arc<Link>, message: ClusterMessage) {
        use ClusterMessage as M;
        match message {
            // A repeated hello is answered again, since a stock peer may have lost the first
            // answer.
            M::Hello(hello) => self.greeted(link, &hello, true),
            M::HelloAck(hello) => self.greeted(link, &hello, false),
            M::Heartbeat(heartbeat) => {
                self.learn(link, |facts| facts.beat(&heartbeat));
                self.tell(link, &M::HeartbeatAck(Box::new(self.machine.facts.heartbeat())));
            }
            M::HeartbeatAck(heartbeat) => self.learn(link, |facts| facts.beat(&heartbeat)),
            M::InferenceRequest(request) => {
                let greeted = self.peers.get(&link.peer).is_some_and(|peer| peer.facts().greeted);
                self.inbound.request(&self.machine, link, greeted, request);
            }
            M::InferenceCancel(cancel) => self.inbound.cancel(link, &cancel.request_id),
            M::InferenceChunk(_) | M::InferenceComplete(_) | M::InferenceError(_) => {
                self.providers.answered(link, message);
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
                self.machine.counts.bad("an answer nobody asked for");
            }
            M::ModelListRequest(request) => {
                catalog::answer(&self.catalog, &self.machine, link, request.request_id);
            }
            M::ModelList(list) => self.catalog.listed(link, list),
            message => self.transfers.message(link, message),
        }
    }

    fn greeted(&self, link: &Arc<Link>, hello: &Hello, answer: bool) {
        self.learn(link, |facts| facts.greeted(hello));
        if answer {
            let own = self.machine.facts.hello(link.sealed);
            self.tell(link, &ClusterMessage::HelloAck(Box::new(own)));
        }
    }

    fn learn(&self, link: &Link, change: impl FnOnce(&mut PeerFacts)) {
        let Some(peer) = self.peers.get(&link.peer) else { return };
        peer.learn(change);
        self.providers.refresh(&peer);
    }

    /// Handles a message that makes no sense: it is logged and counted, and answered if it was a
    /// request.
    fn bad(&self, link: &Arc<Link>, bad: BadMessage) {
        self.machine.counts.bad(&bad.kind);
        tracing::warn!(peer = %link.peer.short(), %bad, "a message of a peer was not understood");
        let why = bad.to_string();
        let answer = match bad.request {
            None => return,
            Some(FailedRequest::Nothing(request_id)) => {
                return self.providers.garbled(link, &request_id, &why);
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

    /// Sends a small message. If the link is closed, its own task notices that.
    fn tell(&self, link: &Link, message: &ClusterMessage) {
        let _: Result<(), LinkClosed> = link.tell(message);
    }
}
