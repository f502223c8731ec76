//! The scheduler's side of a provider whose link makes its messages.
//!
//! Called under the scheduler's lock: everything here queues a note for the link's task, or reads
//! the provider's room briefly, and returns.

use std::time::Duration;

use base::{JobId, ModelName};
use scheduler::{Assignment, CancelReason, Provider, Terms};

use crate::{member::Member, notes::Notes};

/// The scheduler's side of a node or a participant.
pub(crate) struct Sender {
    name: String,
    member: Option<Member>,
    pub(crate) notes: Notes,
}

impl Sender {
    pub(crate) fn new(name: String, member: Option<Member>) -> Self {
        Self { name, member, notes: Notes::new() }
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
        self.notes.cancel(job);
    }

    /// Neither protocol has a message for draining.
    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, clean: bool) {
        self.notes.retire(clean);
    }

    /// A node has its one model as long as it is connected; a participant sends its models when it
    /// joins.
    fn refresh(&self, _: &str) {}

    fn terms(&self, model: ModelName) -> Terms {
        match &self.member {
            Some(member) => member.terms(model),
            None => Terms { model, edit: None },
        }
    }
}
