//! What the scheduler tells a node.
//!
//! Called under the scheduler's lock: everything here leaves a note for the link's task, which
//! keeps the node's tasks and makes their messages, and returns.

use std::time::Duration;

use base::JobId;
use scheduler::{Assignment, CancelReason, Provider};

use crate::notes::Notes;

/// The scheduler's side of a link.
pub(super) struct Sender {
    name: String,
    pub(super) notes: Notes,
}

impl Sender {
    pub(super) fn new(name: String) -> Self {
        Self { name, notes: Notes::default() }
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&self, assignment: Assignment) {
        self.notes.assign(assignment);
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        let _unseen = self.notes.cancel(job);
    }

    /// The protocol has no word for it.
    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, _: bool) {
        self.notes.retire();
    }

    /// A node has its one model for as long as it is connected.
    fn refresh(&self, _: &str) {}
}
