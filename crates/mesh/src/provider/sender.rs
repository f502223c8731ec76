//! The scheduler's notes for a peer's place.
//!
//! Called under the scheduler's lock: everything here leaves a note for the place's task, and returns.

use std::time::Duration;

use base::JobId;
use scheduler::{Assignment, CancelReason, Provider};
use tokio::sync::mpsc;

use crate::peer::PeerId;

/// More notes than a peer has jobs at once, and their cancellations.
const MAX_NOTES: usize = 8_192;

/// A note for a place's task.
pub(super) enum Note {
    /// Ask for this.
    Assigned(Box<Assignment>),
    /// A job is no longer the peer's.
    Canceled(JobId),
}

/// The scheduler's side of a place.
pub(super) struct Sender {
    name: String,
    notes: mpsc::Sender<Note>,
}

impl Sender {
    /// Of the place of this peer, and what its task takes from.
    pub(super) fn new(peer: &PeerId) -> (Self, mpsc::Receiver<Note>) {
        let (notes, taken) = mpsc::channel(MAX_NOTES);
        // Not the name that it gives itself: in the ledger it could pass for another.
        (Self { name: format!("peer:{peer}"), notes }, taken)
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&self, assignment: Assignment) {
        // One that finds no room fails, when its writer is dropped.
        let _ = self.notes.try_send(Note::Assigned(Box::new(assignment)));
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        // One that finds no room is noticed when the peer says more.
        let _ = self.notes.try_send(Note::Canceled(job));
    }

    /// The peer gets no message: it may serve others.
    fn drain(&self, _: &str, _: Duration) {}

    /// Its links stay: they are not the scheduler's.
    fn retire(&self, _: bool) {}

    /// It tells its models with each heartbeat.
    fn refresh(&self, _: &str) {}
}
