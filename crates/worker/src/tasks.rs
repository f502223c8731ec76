//! The tasks of a link's jobs.

use std::collections::HashMap;

use protocol::relay::JobFailure;
use tokio::{
    sync::oneshot,
    task::{Id, JoinError, JoinSet},
};
use tracing::Instrument;

use crate::{job::Job, lent::LoadGuard, order::Order, reply::Reply};

/// The running jobs of one link, by the link's number for them. Dropping it closes their connections to
/// the backend.
#[derive(Default)]
pub(crate) struct JobTasks {
    tasks: JoinSet<()>,
    numbers: HashMap<Id, u32>,
    stops: HashMap<u32, oneshot::Sender<JobFailure>>,
}

/// A job's task has ended.
pub(crate) struct TaskEnd {
    pub(crate) number: u32,
    /// The task broke, and told the server nothing.
    pub(crate) panicked: bool,
}

impl JobTasks {
    pub(crate) fn start(&mut self, order: Order, lent: LoadGuard, reply: Reply) {
        let number = order.number;
        let span = tracing::debug_span!("job", request_id = order.request_id, model = order.model);
        let (stop, stopped) = oneshot::channel();
        let job = Job { order, lent, reply, stop: stopped };
        let task = self.tasks.spawn(job.run().instrument(span));
        self.numbers.insert(task.id(), number);
        self.stops.insert(number, stop);
    }

    /// Has a job stop and tell the server why.
    pub(crate) fn stop(&mut self, number: u32, why: JobFailure) {
        if let Some(stop) = self.stops.remove(&number) {
            // A job that has just ended needs no stopping.
            let _ = stop.send(why);
        }
    }

    /// Waits for the end of a job, for ever if there is none. Cancel safe.
    pub(crate) async fn ended(&mut self) -> TaskEnd {
        loop {
            let Some(ended) = self.tasks.join_next_with_id().await else {
                return std::future::pending().await;
            };
            if let Some(end) = self.forget(ended) {
                return end;
            }
        }
    }

    /// The end of a job that is known already.
    pub(crate) fn try_ended(&mut self) -> Option<TaskEnd> {
        let ended = self.tasks.try_join_next_with_id()?;
        self.forget(ended)
    }

    /// Cuts off the jobs that are left, and waits until their backends have been released.
    pub(crate) async fn shut_down(&mut self) {
        self.tasks.shutdown().await;
    }

    fn forget(&mut self, ended: Result<(Id, ()), JoinError>) -> Option<TaskEnd> {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let number = self.numbers.remove(&id)?;
        self.stops.remove(&number);
        Some(TaskEnd { number, panicked })
    }
}
