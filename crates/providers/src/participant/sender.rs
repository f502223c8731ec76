//! What the scheduler tells a participant.
//!
//! Called under the scheduler's lock: everything here leaves a note for the participant's own task,
//! or looks into its room for a moment, and returns.

use std::time::Duration;

use base::{JobId, ModelName};
use scheduler::{Assignment, CancelReason, Provider, Terms};

use crate::{member::Member, notes::Notes};

/// The scheduler's side of a participant.
pub(super) struct Sender {
    nickname: String,
    member: Member,
    pub(super) notes: Notes,
}

impl Sender {
    pub(super) fn new(nickname: String, member: Member) -> Self {
        Self { nickname, member, notes: Notes::default() }
    }

    pub(super) fn member(&self) -> &Member {
        &self.member
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.nickname
    }

    fn assign(&self, assignment: Assignment) {
        self.notes.assign(assignment);
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        // Its slot is taken until its session says otherwise.
        if self.notes.cancel(job) {
            self.notes.canceled(job);
        }
    }

    /// There is no word for it.
    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, _: bool) {
        self.notes.retire();
    }

    /// A participant tells its models when it joins.
    fn refresh(&self, _: &str) {}

    fn terms(&self, model: ModelName) -> Terms {
        self.member.terms(model)
    }
}
