//! Jobs at an endpoint.

use std::{collections::HashMap, sync::Arc};

use backend::HttpBackend;
use base::JobId;
use scheduler::{Assignment, Gone, Membership};
use tokio::task::{AbortHandle, JoinSet};

use super::{call, sender::Sender};
use crate::{incoming::Incoming, member::Presence, notes::Note, served::Served};

/// The jobs that an endpoint has; those that are left when this is dropped are given up.
pub(super) struct Calls {
    membership: Membership,
    backend: Arc<HttpBackend>,
    served: Served,
    presence: Arc<Presence>,
    /// By job: which attempt at it, and its task.
    running: HashMap<JobId, (u32, AbortHandle)>,
    tasks: JoinSet<Done>,
}

/// A call that came to its end.
pub(super) struct Done {
    pub(super) job: JobId,
    pub(super) attempt: u32,
    /// The endpoint that it asked for is not there.
    pub(super) unserved: Option<Incoming>,
}

impl Calls {
    pub(super) fn new(
        membership: Membership,
        backend: Arc<HttpBackend>,
        served: Served,
        presence: Arc<Presence>,
    ) -> Self {
        let (running, tasks) = (HashMap::new(), JoinSet::new());
        Self { membership, backend, served, presence, running, tasks }
    }

    /// Does what the scheduler decides, until a drain is over.
    pub(super) async fn serve(&mut self, sender: &Sender) {
        loop {
            tokio::select! {
                () = sender.notes.woken() => {
                    if self.notes(sender.notes.take()) {
                        return;
                    }
                }
                Some(done) = self.tasks.join_next() => {
                    // One that was cancelled is none.
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
            }
        }
    }

    /// The endpoint is gone: its jobs are the scheduler's to move or to end.
    pub(super) fn leave(self, unseen: Vec<Note>, why: Gone) {
        for note in unseen {
            if let Note::Assigned(unsent) = note {
                unsent.answer.abandon();
            }
        }
        self.membership.leave(why);
    }

    /// Whether the drain is over.
    fn notes(&mut self, notes: Vec<Note>) -> bool {
        let mut retired = false;
        for note in notes {
            match note {
                Note::Assigned(assignment) => self.call(*assignment),
                Note::Canceled(job) => {
                    if let Some((_, running)) = self.running.remove(&job) {
                        running.abort();
                    }
                }
                Note::Retired => retired = true,
            }
        }
        retired
    }

    fn call(&mut self, assignment: Assignment) {
        let (job, attempt) = (assignment.job, assignment.attempt);
        let (backend, presence) = (Arc::clone(&self.backend), Arc::clone(&self.presence));
        let call = call::run(backend, assignment, self.served, presence);
        let task = self.tasks.spawn(call);
        self.running.insert(job, (attempt, task));
    }

    fn done(&mut self, done: Done) {
        // The job may be here anew.
        if self.running.get(&done.job).is_some_and(|(attempt, _)| *attempt == done.attempt) {
            self.running.remove(&done.job);
        }
        let Some(incoming) = done.unserved else { return };
        let endpoint = incoming.asked.endpoint;
        if self.served.lacks(endpoint) {
            tracing::info!(%endpoint, "the participant's backend does not serve this: translating");
            self.membership.endpoints(self.served.endpoints());
        }
        incoming.writer.unserved();
    }
}
