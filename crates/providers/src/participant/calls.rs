//! Jobs at an endpoint.

use std::{collections::HashMap, sync::Arc};

use backend::HttpBackend;
use base::JobId;
use scheduler::{Assignment, LeaveReason, Membership};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::Instant,
};
use wire::until;

use super::call;
use crate::{
    incoming::Incoming,
    member::Presence,
    notes::{Note, Sender},
    served::ServedEndpoints,
};

/// The jobs at an endpoint. Dropping this abandons the remaining ones.
pub(super) struct Calls {
    membership: Membership,
    backend: Arc<HttpBackend>,
    served: ServedEndpoints,
    presence: Arc<Presence>,
    /// The attempt number and the task of each job.
    running: HashMap<JobId, (u32, AbortHandle)>,
    tasks: JoinSet<CallResult>,
}

/// How a call ended.
pub(super) struct CallResult {
    pub(super) job: JobId,
    pub(super) attempt: u32,
    /// The job, if its answer is complete.
    pub(super) complete: Option<Incoming>,
}

impl Calls {
    pub(super) fn new(
        membership: Membership,
        backend: Arc<HttpBackend>,
        served: ServedEndpoints,
        presence: Arc<Presence>,
    ) -> Self {
        let (running, tasks) = (HashMap::new(), JoinSet::new());
        Self { membership, backend, served, presence, running, tasks }
    }

    /// Carries out the scheduler's decisions until a drain is over.
    pub(super) async fn serve(&mut self, sender: &Sender) {
        loop {
            tokio::select! {
                () = sender.notes.woken() => {
                    if self.notes(sender.notes.take()) {
                        return;
                    }
                }
                () = until(self.served.next_retry()) => {
                    if self.served.retry(Instant::now()) {
                        self.membership.endpoints(self.served.endpoints());
                    }
                }
                Some(done) = self.tasks.join_next() => {
                    match done {
                        Ok(done) => self.done(done),
                        // A cancelled call, or one that has panicked, has no result.
                        Err(error) => self.running.retain(|_, (_, task)| task.id() != error.id()),
                    }
                }
            }
        }
    }

    /// Leaves the scheduler, which moves or ends the endpoint's jobs.
    pub(super) fn leave(self, unseen: Vec<Note>, why: LeaveReason) {
        for note in unseen {
            if let Note::Assigned(unsent) = note {
                unsent.answer.abandon();
            }
        }
        self.membership.leave(why);
    }

    /// Carries out notes. Returns whether the drain is over.
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
                Note::Retired { .. } => retired = true,
            }
        }
        retired
    }

    fn call(&mut self, assignment: Assignment) {
        let (job, attempt) = (assignment.job, assignment.attempt);
        let (backend, presence) = (Arc::clone(&self.backend), Arc::clone(&self.presence));
        let call = call::run(backend, assignment, self.served.clone(), presence);
        let task = self.tasks.spawn(call);
        self.running.insert(job, (attempt, task));
    }

    fn done(&mut self, done: CallResult) {
        // The same job may have come back in the meantime, as another attempt.
        if self.running.get(&done.job).is_some_and(|(attempt, _)| *attempt == done.attempt) {
            self.running.remove(&done.job);
        }
        let Some(incoming) = done.complete else { return };
        self.served.end(&self.membership, incoming, "participant");
    }
}
