//! The scheduler's side of a provider: its decisions, queued for the link's task.
//!
//! Called under the scheduler's lock: everything here queues a note, or reads the provider's room briefly, and returns.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{JobId, ModelName};
use scheduler::{Assignment, CancelReason, Provider, Terms};
use tokio::sync::Notify;

use crate::member::Member;

/// A decision that the link's task carries out.
pub(crate) enum Note<J = Assignment> {
    Assigned(Box<J>),
    Canceled(JobId),
    /// The drain is over, and the link must close. `clean`: nothing was cut off.
    Retired {
        clean: bool,
    },
}

/// A job on its way from the scheduler's lock to the link's task.
pub(crate) trait AssignedJob {
    fn id(&self) -> JobId;

    /// Abandons the job: the link's task will no longer take it.
    fn abandon(self);
}

impl AssignedJob for Assignment {
    fn id(&self) -> JobId {
        self.job
    }

    fn abandon(self) {
        self.answer.abandon();
    }
}

/// The notes that a link's task has not taken yet. The provider's capacity bounds them: no more
/// jobs than that are assigned at once, and each cancellation, which frees a slot, wakes the task
/// to take all notes, even if the provider's socket is stuck.
pub(crate) struct Notes<J = Assignment> {
    notes: Mutex<Vec<Note<J>>>,
    wake: Notify,
}

impl<J: AssignedJob> Notes<J> {
    pub(crate) fn new() -> Self {
        Self { notes: Mutex::default(), wake: Notify::new() }
    }

    /// Waits until there are notes to take.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// The notes since the last call.
    pub(crate) fn take(&self) -> Vec<Note<J>> {
        std::mem::take(&mut *self.lock())
    }

    /// Moves the notes since the last call into `noted`, which must be empty. Its memory is used
    /// for the next notes.
    pub(crate) fn take_into(&self, noted: &mut Vec<Note<J>>) {
        std::mem::swap(&mut *self.lock(), noted);
    }

    pub(crate) fn assign(&self, job: J) {
        self.lock().push(Note::Assigned(Box::new(job)));
        self.wake.notify_one();
    }

    /// Queues a job that was already sent. The task takes it with the provider's next frame, so
    /// that a request needs no wake-up of its own.
    pub(crate) fn assign_sent(&self, job: J) {
        self.lock().push(Note::Assigned(Box::new(job)));
    }

    /// Cancels a job. If the link's task has not taken it yet, it never will.
    pub(crate) fn cancel(&self, job: JobId) {
        let mut notes = self.lock();
        let is_own = |note: &Note<J>| matches!(note, Note::Assigned(unseen) if unseen.id() == job);
        let unseen = notes.iter().position(is_own).map(|at| notes.remove(at));
        notes.push(Note::Canceled(job));
        // Frees the job outside the lock, with everything that it holds.
        drop(notes);
        if let Some(Note::Assigned(unseen)) = unseen {
            unseen.abandon();
        }
        self.wake.notify_one();
    }

    pub(crate) fn retire(&self, clean: bool) {
        self.lock().push(Note::Retired { clean });
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note<J>>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scheduler's side of a node or a participant, whose link makes its messages.
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
