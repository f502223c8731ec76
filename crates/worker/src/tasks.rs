//! The tasks of a link's jobs.

use std::collections::HashMap;

use protocol::relay::JobFailure;
use tokio::{
    sync::oneshot,
    task::{Id, JoinError, JoinSet},
};
use tracing::Instrument;

use crate::{job::Job, lent::LoadGuard, order::Order, reply::Reply};

/// The running jobs of one link, by their numbers on it. Dropping this closes their connections to the
/// backend.
#[derive(Default)]
pub(crate) struct JobTasks {
    /// Each task returns its job's number.
    tasks: JoinSet<u32>,
    running: HashMap<u32, RunningTask>,
}

struct RunningTask {
    task: Id,
    /// `None` once the job was stopped.
    stop: Option<oneshot::Sender<JobFailure>>,
}

/// A job's task has ended.
pub(crate) struct TaskEnd {
    pub(crate) number: u32,
    /// Whether the task panicked, and so has reported nothing to the server.
    pub(crate) panicked: bool,
}

impl JobTasks {
    pub(crate) fn start(&mut self, order: Order, lent: LoadGuard, reply: Reply) {
        let number = order.number;
        let span = tracing::debug_span!("job", request_id = order.request_id, model = order.model);
        let (stop, stopped) = oneshot::channel();
        let job = Job { order, lent, reply, stop: stopped };
        let task = self.tasks.spawn(job.run().instrument(span)).id();
        self.running.insert(number, RunningTask { task, stop: Some(stop) });
    }

    /// Makes a job stop and tell the server why.
    pub(crate) fn stop(&mut self, number: u32, why: JobFailure) {
        if let Some(stop) = self.running.get_mut(&number).and_then(|job| job.stop.take()) {
            // The job may have ended meanwhile.
            let _ = stop.send(why);
        }
    }

    /// Waits for the end of a job; for ever if none runs. Cancel safe.
    pub(crate) async fn ended(&mut self) -> TaskEnd {
        loop {
            let Some(ended) = self.tasks.join_next().await else {
                return std::future::pending().await;
            };
            if let Some(end) = self.forget(ended) {
                return end;
            }
        }
    }

    /// The end of a job that has ended already.
    pub(crate) fn try_ended(&mut self) -> Option<TaskEnd> {
        let ended = self.tasks.try_join_next()?;
        self.forget(ended)
    }

    /// Cuts off the jobs that are left, and waits until their backends have been released.
    pub(crate) async fn shut_down(&mut self) {
        self.tasks.shutdown().await;
    }

    fn forget(&mut self, ended: Result<u32, JoinError>) -> Option<TaskEnd> {
        let (number, panicked) = match ended {
            Ok(number) => (number, false),
            Err(error) => (self.number_of(error.id())?, error.is_panic()),
        };
        // A task whose end was reported before is not reported again.
        self.running.remove(&number)?;
        Some(TaskEnd { number, panicked })
    }

    /// The number of a task that panicked, and so did not return it.
    fn number_of(&self, task: Id) -> Option<u32> {
        let mut running = self.running.iter();
        running.find(|(_, job)| job.task == task).map(|(number, _)| *number)
    }
}
