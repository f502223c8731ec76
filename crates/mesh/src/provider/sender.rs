//! The scheduler's calls to a peer's provider.
//!
//! They come under the scheduler's lock. So each method only queues a note for the provider's task,
//! and returns.

use std::time::Duration;

use base::JobId;
use scheduler::{Assignment, CancelReason, Provider};
use tokio::sync::mpsc;

use crate::peer::PeerId;

/// The most notes that wait. It is more than the jobs that a peer may have at once, with their
/// cancellations.
const MAX_NOTES: usize = 8_192;

/// A note for a provider's task.
pub(super) enum Note {
    /// Send this request.
    Assigned(Box<Assignment>),
    /// A job is no longer at the peer.
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
        // The name is not the one that the peer gives itself, since in the ledger that could be
        // mistaken for another peer's.
        (Self { name: format!("peer:{peer}"), notes }, queue)
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&self, assignment: Assignment) {
        // A job that finds no room fails, since its writer is dropped with the note.
        let _ = self.notes.try_send(Note::Assigned(Box::new(assignment)));
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        // If there is no room for the note, the next chunk shows that the job has ended: its writer
        // refuses the chunk.
        let _ = self.notes.try_send(Note::Canceled(job));
    }

    /// The peer gets no message, since it may go on serving others.
    fn drain(&self, _: &str, _: Duration) {}

    /// The peer's links stay, since they do not belong to the scheduler.
    fn retire(&self, _: bool) {}

    /// Nothing to do: each heartbeat brings the peer's models.
    fn refresh(&self, _: &str) {}
}
