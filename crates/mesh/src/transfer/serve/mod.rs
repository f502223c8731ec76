//! Models that are passed on to peers.
//!
//! A Warren requests a model's manifest, then its hash trees and pieces. For each link, one task
//! reads and sends them in the order of the requests. A stock peer requests the whole model at
//! once.
//!
//! - `questions`: questions that are answered with one message
//! - `sender`: sends hash trees and pieces
//! - `plain`: the plain form of stock peers
//! - `outbound`: one transfer

mod outbound;
mod plain;
mod questions;
mod sender;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
    time::Duration,
};

use protocol::{
    admin::mesh::MeshTransfer,
    mesh::{
        ClusterMessage, WireId,
        cluster::{ModelPieceRequest, ModelTransferError, ModelTreeRequest},
    },
};
use tokio::sync::mpsc;

use self::{
    outbound::Outbound,
    sender::{Part, PartRequest},
};
use super::shared::Shared;
use crate::link::Link;

/// The most transfers over one link.
const MAX_TRANSFERS: usize = 16;

/// How long a transfer must be idle before another one may take its place.
const IDLE: Duration = Duration::from_secs(60);

/// How long a transfer must be idle before the start of any other one ends it.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// The most requests for trees and pieces that wait on one link.
const MAX_REQUESTS: usize = 64;

/// The most pieces in one request.
const MAX_COUNT: u32 = 64;

/// The transfers to peers.
pub(super) struct ModelServer {
    shared: Arc<Shared>,
    links: Mutex<HashMap<u64, OfLink>>,
    /// The number of questions that are being answered.
    open: Arc<AtomicUsize>,
}

#[derive(Default)]
struct OfLink {
    transfers: Vec<Arc<Outbound>>,
    requests: Option<mpsc::Sender<PartRequest>>,
}

impl ModelServer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, links: Mutex::default(), open: Arc::default() }
    }

    /// Handles a request for a tree.
    pub(super) fn tree(self: &Arc<Self>, link: &Arc<Link>, request: &ModelTreeRequest) {
        let part = Part::Tree { file: request.file };
        self.queue(link, &request.transfer_id, part);
    }

    /// Handles a request for pieces.
    pub(super) fn pieces(self: &Arc<Self>, link: &Arc<Link>, request: &ModelPieceRequest) {
        let ModelPieceRequest { file, first, count, .. } = *request;
        let part = Part::Pieces { file, first, count };
        self.queue(link, &request.transfer_id, part);
    }

    /// The state of each transfer; the newest last.
    pub(super) fn list(&self) -> Vec<MeshTransfer> {
        let links = self.lock();
        let mut all: Vec<_> = links.values().flat_map(|it| &it.transfers).collect();
        all.sort_by_key(|outbound| outbound.number);
        all.into_iter().filter(|outbound| outbound.is_known()).map(|it| it.state()).collect()
    }

    /// Stops the transfer with this id. Returns whether there was one.
    pub(super) fn cancel(&self, id: &WireId) -> bool {
        let mut links = self.lock();
        let stopped: Vec<_> = links.values_mut().flat_map(|it| it.take(id)).collect();
        // Unlocked before the transfers end, since each end takes the lock of the ended transfers.
        drop(links);
        for outbound in &stopped {
            refuse(&outbound.link, id, "it was stopped by whoever runs the machine");
            outbound.end(&self.shared, "cancelled", None);
        }
        !stopped.is_empty()
    }

    /// Handles a peer's message that it has all of a model. Returns whether there was such a
    /// transfer.
    pub(super) fn complete(&self, link: &Link, id: &WireId) -> bool {
        let taken = self.take(link, id);
        taken.iter().for_each(|outbound| outbound.end(&self.shared, "done", None));
        !taken.is_empty()
    }

    /// Handles a peer's message that it no longer wants a model. Returns whether there was such a
    /// transfer.
    pub(super) fn unwanted(&self, link: &Link, id: &WireId) -> bool {
        let taken = self.take(link, id);
        taken.iter().for_each(|outbound| outbound.end(&self.shared, "cancelled", None));
        !taken.is_empty()
    }

    /// Handles the end of a link.
    pub(super) fn link_closed(&self, link: &Link) {
        let of_link = self.lock().remove(&link.number).unwrap_or_default();
        for outbound in of_link.transfers {
            outbound.end(&self.shared, "failed", Some("the link has ended"));
        }
    }

    /// Enters a transfer into the list, unless there are too many.
    fn begin(&self, link: &Arc<Link>, id: &WireId, model: &str) -> Result<Arc<Outbound>, String> {
        let uuid = id.uuid().ok_or("the transfer's id is no UUID")?;
        self.make_room(link, id);
        let mut links = self.lock();
        let of_link = links.entry(link.number).or_default();
        if of_link.transfers.len() >= MAX_TRANSFERS {
            return Err("too many transfers run over this link".to_owned());
        }
        let outbound = Arc::new(Outbound::new(link, id.clone(), uuid, model));
        of_link.transfers.push(Arc::clone(&outbound));
        Ok(outbound)
    }

    /// Ends what the peer has given up: an earlier transfer with the same id, and idle ones.
    fn make_room(&self, link: &Link, id: &WireId) {
        for before in self.take(link, id) {
            before.end(&self.shared, "cancelled", None);
        }
        for idle in self.take_idle(link) {
            idle.end(&self.shared, "failed", Some("the peer has taken nothing for too long"));
        }
    }

    fn take_idle(&self, link: &Link) -> Vec<Arc<Outbound>> {
        let mut links = self.lock();
        let Some(of_link) = links.get_mut(&link.number) else { return Vec::new() };
        let is_full = of_link.transfers.len() >= MAX_TRANSFERS;
        let idle = if is_full { IDLE } else { FORGOTTEN };
        of_link.transfers.extract_if(.., |outbound| outbound.silence() >= idle).collect()
    }

    /// Removes a transfer from the list.
    fn take(&self, link: &Link, id: &WireId) -> Vec<Arc<Outbound>> {
        let mut links = self.lock();
        links.get_mut(&link.number).map(|it| it.take(id).collect()).unwrap_or_default()
    }

    fn queue(self: &Arc<Self>, link: &Arc<Link>, id: &WireId, part: Part) {
        if let Err(why) = self.try_queue(link, id, part) {
            self.shared.counts.refused.one();
            refuse(link, id, why);
        }
    }

    fn try_queue(
        self: &Arc<Self>,
        link: &Arc<Link>,
        id: &WireId,
        part: Part,
    ) -> Result<(), &'static str> {
        let mut links = self.lock();
        let of_link = links.get_mut(&link.number).ok_or(UNKNOWN)?;
        let outbound = of_link.transfers.iter().find(|it| it.id == *id).ok_or(UNKNOWN)?;
        let hashed = outbound.hashed.get().ok_or(UNKNOWN)?;
        if !part.is_inside(hashed) {
            return Err("the model has nothing there");
        }
        let request = PartRequest { outbound: Arc::clone(outbound), part };
        let requests = of_link.requests.get_or_insert_with(|| {
            let (requests, queue) = mpsc::channel(MAX_REQUESTS);
            self.shared.machine.tasks.spawn(sender::send(
                Arc::clone(self),
                Arc::clone(link),
                queue,
            ));
            requests
        });
        requests.try_send(request).map_err(|_| "too many requests wait on this link")
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, OfLink>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const UNKNOWN: &str = "there is no such transfer: ask for what the model is made of first";

impl OfLink {
    fn take(&mut self, id: &WireId) -> impl Iterator<Item = Arc<Outbound>> {
        let (taken, others) =
            std::mem::take(&mut self.transfers).into_iter().partition(|it| it.id == *id);
        self.transfers = others;
        let taken: Vec<_> = taken;
        taken.into_iter()
    }
}

/// Tells a peer that a transfer cannot begin or cannot go on.
fn refuse(link: &Link, id: &WireId, why: &str) {
    let (transfer_id, error_message) = (id.clone(), why.to_owned());
    let error = ModelTransferError { transfer_id, error_message };
    // If the link is closed, its own task notices.
    let _ = link.tell(&ClusterMessage::ModelTransferError(error));
}
