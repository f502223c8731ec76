//! Tasks that are stopped and awaited together.

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Report;

#[derive(Debug)]
pub struct Crew {
    kind: &'static str,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Crew {
    /// An empty crew. `kind` names one of its tasks in reports.
    pub fn of(kind: &'static str) -> Self {
        Self { kind, stop: CancellationToken::new(), tasks: JoinSet::new() }
    }

    /// Cancelled when the tasks have to end.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Cancels the token, and waits until all tasks have ended.
    pub async fn stop<T>(self, report: &Report<T>) {
        self.stop.cancel();
        self.join(report).await;
    }

    /// Waits until all of them have ended, and reports those that panicked.
    pub async fn join<T>(mut self, report: &Report<T>) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                report.wrong(format!("{}: {error}", self.kind));
            }
        }
    }
}
