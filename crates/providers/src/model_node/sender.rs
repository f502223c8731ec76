//! What the scheduler tells a node.
//!
//! Called under the scheduler's lock: everything here leaves a note for the link's task, wakes it
//! and returns. The task makes the messages, since reading a conversation takes time.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::JobId;
use scheduler::{Assignment, CancelReason, Provider};
use tokio::sync::Notify;

/// The scheduler's side of a link.
pub(super) struct Sender {
    name: String,
    /// What the link's task has not seen yet. Bounded by the node's capacity: no more jobs than
    /// that are assigned at once, and a cancellation takes its job's note out or wakes the task.
    notes: Mutex<Vec<Note>>,
    wake: Notify,
}

/// What the link's task must do.
pub(super) enum Note {
    /// Send the node a task.
    Assigned(Box<Assignment>),
    /// Stop a task.
    Canceled(JobId),
    /// Close: the drain is over.
    Retired,
}

impl Sender {
    pub(super) fn new(name: String) -> Self {
        Self { name, notes: Mutex::default(), wake: Notify::new() }
    }

    /// Waits until there is something to do.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// What has come since the last call.
    pub(super) fn notes(&self) -> Vec<Note> {
        std::mem::take(&mut *self.lock())
    }

    fn leave(&self, note: Note) {
        self.lock().push(note);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&self, assignment: Assignment) {
        self.leave(Note::Assigned(Box::new(assignment)));
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        let mut notes = self.lock();
        let is_own = |note: &Note| matches!(note, Note::Assigned(assigned) if assigned.job == job);
        let Some(at) = notes.iter().position(is_own) else {
            drop(notes);
            return self.leave(Note::Canceled(job));
        };
        if let Note::Assigned(unsent) = notes.remove(at) {
            unsent.answer.abandon();
        }
    }

    /// The protocol has no word for it.
    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, _: bool) {
        self.leave(Note::Retired);
    }

    /// A node has its one model for as long as it is connected.
    fn refresh(&self, _: &str) {}
}
