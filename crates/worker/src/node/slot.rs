//! A slot for one task, which outlives a connection that is cut.

use std::time::Duration;

use protocol::node::Task;
use tokio::{
    task::{JoinError, JoinSet},
    time::Instant,
};
use tracing::Instrument;
use wire::Outbox;

use super::{
    job::{TaskFailure, TaskJob},
    reply::Reply,
    session::{Action, TaskSession},
};
use crate::lent::LoadGuard;

/// How long a task is kept without a connection. Stock servers give a task up after this time.
const KEPT: Duration = Duration::from_secs(600);

/// One slot, over all its connections.
#[derive(Debug, Default)]
pub(crate) struct TaskSlot {
    session: TaskSession,
    /// The running task, if there is one.
    job: JoinSet<Result<(), TaskFailure>>,
    reply: Reply,
    /// When its connection was cut; `None` while it has one.
    cut: Option<Instant>,
}

impl TaskSlot {
    /// How many tasks are unfinished or not completely sent: at most one.
    pub(crate) fn pending(&self) -> usize {
        usize::from(self.session.is_busy() || !self.reply.is_empty())
    }

    /// The id of the running task.
    pub(super) fn running(&self) -> Option<i32> {
        self.session.running()
    }

    /// Attaches a new connection, which takes the waiting frames.
    pub(super) fn attach(&mut self, outbox: Outbox) {
        self.cut = None;
        self.reply.attach(outbox);
    }

    /// The connection is gone; the task goes on.
    pub(super) fn cut(&mut self) {
        self.cut = Some(Instant::now());
        // From now on, another task of the server replaces this one.
        self.session.carry();
        self.reply.detach();
    }

    /// Gives up a task that has been without a connection for too long.
    pub(crate) fn give_up_late(&mut self) {
        if self.cut.is_some_and(|cut| cut.elapsed() >= KEPT) && self.pending() > 0 {
            let task = self.session.running();
            tracing::warn!(task, "a task was given up: no connection for {KEPT:?}");
            self.forget();
        }
    }

    /// Takes nothing new from now on.
    pub(super) fn drain(&mut self) {
        self.session.drain();
    }

    /// Handles a text frame of the server.
    pub(super) fn on_text(&mut self, text: &str) -> Option<Action> {
        self.session.on_text(text)
    }

    /// Begins a task. Drops a task that was carried over, since the server has given that one up.
    pub(super) fn start(&mut self, model: &str, task: Task, lent: LoadGuard) {
        self.stop();
        let reply = self.reply.clone();
        let span = tracing::debug_span!("task", task = task.id, model);
        let job = TaskJob { model: model.to_owned(), task, lent, reply };
        self.job.spawn(job.run().instrument(span));
    }

    /// Stops the running task and its backend's answer. Nothing more of it is sent.
    pub(super) fn stop(&mut self) {
        self.job = JoinSet::new();
        self.reply.clear();
    }

    /// Waits for the end of the running task; for ever if no task runs.
    pub(super) async fn ended(&mut self) -> Result<Result<(), TaskFailure>, JoinError> {
        match self.job.join_next().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }

    /// Ends the running task, and waits until its backend has been released.
    pub(super) async fn end(&mut self) {
        self.job.shutdown().await;
    }

    /// The running task has finished, and all of its text is queued.
    pub(super) fn done(&mut self) {
        self.session.ended();
    }

    /// Ends a running task that has failed: its last text says so, and the server gets its slot
    /// back.
    pub(super) fn fail(&mut self, why: &str) {
        self.job = JoinSet::new();
        if let Some(task) = self.session.running() {
            self.reply.fail(task, why);
        }
        self.session.ended();
    }

    /// Drops the running task and its unsent text.
    pub(super) fn forget(&mut self) {
        self.stop();
        self.session.ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_text() -> TaskSlot {
        let mut slot = TaskSlot::default();
        slot.on_text(r#"{"state":0,"id":1,"messages":["hi"]}"#);
        slot.fail("no memory");
        slot
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_without_a_connection_is_given_up_after_a_while() {
        let mut slot = with_text();
        slot.give_up_late();
        slot.cut();
        tokio::time::advance(KEPT - Duration::from_secs(1)).await;
        slot.give_up_late();
        assert_eq!(slot.pending(), 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        slot.give_up_late();
        assert_eq!(slot.pending(), 0);
    }
}
