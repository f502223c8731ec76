//! The scheduler's calls to a peer's provider.
//!
//! They come under the scheduler's lock: everything here queues a note for the provider's task, and returns.

use std::time::Duration;

use base::JobId;
use scheduler::{Assignment, CancelReason, Provider};
use tokio::sync::mpsc;

use crate::peer::PeerId;

/// More notes than a peer has jobs at once, and their cancellations.
const MAX_NOTES: usize = 8_192;

/// A note for a provider's task.
pub(super) enum Note {
    /// Send this request.
    Assigned(Box<Assignment>),
    /// A job is no longer the peer's.
    Canceled(JobId),
}

/// The scheduler's side of a provider.
pub(super) struct Sender {
    name: String,
    notes: mpsc::Sender<Note>,
}

impl Sender {
    /// A sender for this peer, and the queue of its notes.
    pub(super) fn new(peer: &PeerId) -> (Self, mpsc::Receiver<Note>) {
        let (notes, queue) = mpsc::channel(MAX_NOTES);
        // Not the name that it gives itself: in the ledger it could pass for another.
        (Self { name: format!("peer:{peer}"), notes }, queue)
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&self, assignment: Assignment) {
        // A job that finds no room fails: its writer is dropped with the note.
        let _ = self.notes.try_send(Note::Assigned(Box::new(assignment)));
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        // Without room for it, the next chunk shows that the job is over: its writer refuses it.
        let _ = self.notes.try_send(Note::Canceled(job));
    }

    /// The peer gets no message: it may serve others.
    fn drain(&self, _: &str, _: Duration) {}

    /// Its links stay: they are not the scheduler's.
    fn retire(&self, _: bool) {}

    /// Each heartbeat brings its models.
    fn refresh(&self, _: &str) {}
}
