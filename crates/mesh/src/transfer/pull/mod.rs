//! Models that are fetched.
//!
//! - `find`: finds the peers that have a model
//! - `choose`: chooses among their files
//! - `run`: a pull from its beginning to its end
//! - `fetch`: fetches hash trees and pieces from several peers at once
//! - `plain`: the plain form of stock peers
//! - `inbox`: receives what peers send; the thread that checks and writes it
//! - `slices`: pieces put together from their slices
//! - `outcome`: how a pull goes on, and why it ends

mod choose;
mod fetch;
mod find;
mod inbox;
mod outcome;
mod plain;
mod run;
mod slices;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use models::ModelId;
use protocol::{
    admin::mesh::MeshTransfer,
    json::clip,
    mesh::{
        WireId,
        cluster::{ModelManifest, ModelTransferChunk, ModelTransferComplete, Piece},
    },
};
use rand::RngExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::outcome::{Pull, PullError};
use self::{inbox::Inbox, outcome::Failure, plain::PlainInbox};
use super::shared::Shared;
use crate::{link::Link, peer::PeerId};

/// The most models that are fetched at a time.
pub(super) const MAX_PULLS: usize = 4;

/// The longest reason from a peer that is kept, in bytes.
const MAX_WHY: usize = 256;

/// A model that is being fetched.
pub(super) struct Job {
    /// The id of the transfer. It is the same for all peers.
    id: WireId,
    uuid: [u8; 16],
    model: ModelId,
    /// The only peer to fetch it from, if one was named.
    from: Option<PeerId>,
    inbox: Inbox,
    plain: PlainInbox,
    progress: watch::Sender<MeshTransfer>,
    cancel: CancellationToken,
}

impl Job {
    /// Whether it fetches the model with this name.
    fn is_model(&self, name: &str) -> bool {
        self.model.as_str() == name
    }

    pub(super) fn now(&self) -> MeshTransfer {
        self.progress.borrow().clone()
    }

    /// Changes its progress.
    fn show(&self, change: impl FnOnce(&mut MeshTransfer)) {
        // Watchers should not be woken if nothing has changed.
        self.progress.send_if_modified(|transfer| {
            let before = transfer.clone();
            change(transfer);
            *transfer != before
        });
    }
}

/// The models that are being fetched.
pub(super) struct Pulls {
    jobs: Mutex<Vec<Arc<Job>>>,
    shared: Arc<Shared>,
}

impl Pulls {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { jobs: Mutex::default(), shared }
    }

    /// Begins to fetch a model, or joins a running pull of it.
    pub(super) fn pull(
        self: &Arc<Self>,
        model: &str,
        from: Option<PeerId>,
    ) -> Result<Pull, PullError> {
        let model = ModelId::try_from(model)?;
        // Held until the job is in the list. Otherwise two callers could begin the same pull.
        let mut jobs = self.lock();
        if let Some(job) = jobs.iter().find(|job| job.model == model) {
            return Ok(Pull(job.progress.subscribe()));
        }
        if jobs.len() >= MAX_PULLS {
            return Err(PullError::TooMany(MAX_PULLS));
        }
        if self.shared.machine.stop.is_cancelled() {
            return Err(PullError::Unavailable("the server is stopping".to_owned()));
        }
        let (job, events) = Job::new(model, from, self.shared.machine.stop.child_token());
        let (job, pull) = (Arc::new(job.0), Pull(job.1));
        jobs.push(Arc::clone(&job));
        drop(jobs);
        let tasks = self.shared.machine.tasks.clone();
        tasks.spawn(run::run(Arc::clone(self), job, events));
        Ok(pull)
    }

    /// The state of each pull; the newest last.
    pub(super) fn list(&self) -> Vec<MeshTransfer> {
        self.lock().iter().map(|job| job.now()).collect()
    }

    /// Stops the pull with this id. Returns whether there was one.
    pub(super) fn cancel(&self, id: &WireId) -> bool {
        let jobs = self.lock();
        let job = jobs.iter().find(|job| job.id == *id);
        job.inspect(|job| job.cancel.cancel()).is_some()
    }

    /// Handles a manifest. Returns whether it was requested.
    pub(super) fn manifest(&self, link: &Link, manifest: ModelManifest) -> bool {
        let job = self.of_id(&manifest.transfer_id);
        job.is_some_and(|job| job.inbox.manifest(link, Ok(manifest)))
    }

    /// Handles a peer's message that it cannot go on with a transfer. Returns whether the transfer
    /// is one of these.
    pub(super) fn refused(&self, link: &Link, id: &WireId, why: &str) -> bool {
        let why = clip(why, MAX_WHY);
        self.of_id(id).is_some_and(|job| {
            job.plain.refused(link, why);
            job.inbox.refused(link, why.to_owned())
        })
    }

    /// Handles a slice. Returns whether it was requested.
    pub(super) fn slice(&self, link: &Arc<Link>, piece: &Piece) -> bool {
        let job = self.find(|job| job.uuid == piece.transfer);
        job.is_some_and(|job| job.inbox.slice(link, piece))
    }

    /// Handles a chunk in the plain form. Returns whether it was requested.
    pub(super) fn chunk(&self, link: &Link, chunk: &ModelTransferChunk) -> bool {
        self.of_id(&chunk.transfer_id).is_some_and(|job| job.plain.chunk(link, chunk))
    }

    /// Handles a peer's message that it has sent everything in the plain form. Returns whether that
    /// was requested.
    pub(super) fn complete(&self, link: &Link, complete: &ModelTransferComplete) -> bool {
        self.of_id(&complete.transfer_id).is_some_and(|job| job.plain.complete(link))
    }

    /// Handles the end of a link.
    pub(super) fn link_closed(&self, link: &Link) {
        for job in self.lock().iter() {
            job.inbox.link_closed(link);
        }
    }

    fn of_id(&self, id: &WireId) -> Option<Arc<Job>> {
        self.find(|job| job.id == *id)
    }

    fn find(&self, is: impl Fn(&Job) -> bool) -> Option<Arc<Job>> {
        self.lock().iter().find(|job| is(job)).cloned()
    }

    fn remove(&self, job: &Arc<Job>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, job));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job, and the first watcher of its progress.
type StartedJob = (Job, watch::Receiver<MeshTransfer>);

impl Job {
    fn new(
        model: ModelId,
        from: Option<PeerId>,
        cancel: CancellationToken,
    ) -> (StartedJob, tokio::sync::mpsc::Receiver<inbox::Event>) {
        let id = WireId::from_random(rand::rng().random());
        // The id was made from a UUID, so this never fails.
        let uuid = id.uuid().unwrap_or_default();
        let (inbox, events) = Inbox::new();
        let (progress, pull) = watch::channel(MeshTransfer {
            id: id.to_string(),
            model: model.to_string(),
            direction: "in".to_owned(),
            state: "searching".to_owned(),
            ..MeshTransfer::default()
        });
        let plain = PlainInbox::default();
        let job = Self { id, uuid, model, from, inbox, plain, progress, cancel };
        ((job, pull), events)
    }
}
