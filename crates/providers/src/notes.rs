//! What the scheduler has decided for a provider, until the provider's own task sees it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use base::JobId;
use scheduler::Assignment;
use tokio::sync::Notify;

/// What a provider's task must do.
pub(crate) enum Note {
    /// Ask for this.
    Assigned(Box<Assignment>),
    /// A job is no longer the provider's.
    Canceled(JobId),
    /// Close: the drain is over.
    Retired,
}

/// What a provider's task has not seen yet. Bounded by the provider's capacity: no more jobs than
/// that are assigned at once, and a cancellation takes its job's note out or wakes the task.
#[derive(Default)]
pub(crate) struct Notes {
    notes: Mutex<Vec<Note>>,
    wake: Notify,
}

impl Notes {
    /// Waits until there is something to do.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// What has come since the last call.
    pub(crate) fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.lock())
    }

    /// A job is the provider's.
    pub(crate) fn assign(&self, assignment: Assignment) {
        self.leave(Note::Assigned(Box::new(assignment)));
    }

    /// A job is no longer the provider's. If the provider's task has not seen it yet, it never will.
    /// Returns whether that is the case.
    pub(crate) fn cancel(&self, job: JobId) -> bool {
        let mut notes = self.lock();
        let is_own = |note: &Note| matches!(note, Note::Assigned(assigned) if assigned.job == job);
        let Some(at) = notes.iter().position(is_own) else {
            drop(notes);
            self.canceled(job);
            return false;
        };
        if let Note::Assigned(unsent) = notes.remove(at) {
            unsent.answer.abandon();
        }
        true
    }

    /// Tells the task of a cancellation, whether or not it has seen the job.
    pub(crate) fn canceled(&self, job: JobId) {
        self.leave(Note::Canceled(job));
    }

    /// The drain is over.
    pub(crate) fn retire(&self) {
        self.leave(Note::Retired);
    }

    fn leave(&self, note: Note) {
        self.lock().push(note);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
