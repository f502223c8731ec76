//! All model engines of this machine.

use std::{
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};

use backend::ModelEngines;
use tokio::time::{sleep_until, timeout};

use crate::{config::EnginesConfig, model::EngineModel, part::Part, shared::Shared};

/// How long the end of all servers may take beyond their grace.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// All model engines of this machine. When this is dropped, their servers end.
#[derive(Debug)]
pub struct Engines {
    shared: Arc<Shared>,
}

impl Engines {
    /// Model engines without models. Starts no server yet. Must be called within a tokio runtime
    /// that outlives the value.
    pub fn new(config: EnginesConfig) -> Self {
        let shared = Arc::new(Shared::new(config));
        tokio::spawn(keep_deadlines(Arc::downgrade(&shared)));
        Self { shared }
    }

    /// Replaces the list of models. A model that is no longer in it finishes its requests and is unloaded. A
    /// model whose file or command has changed is started again. If two have the same name, the first counts.
    pub fn set_models(&self, models: Vec<EngineModel>) {
        self.shared.set_models(models);
    }

    /// The models that a program serves, to be lent together.
    pub fn part(&self, program: &str) -> Arc<dyn ModelEngines> {
        Arc::new(Part::new(Arc::clone(&self.shared), program))
    }

    /// The last lines that a model's server has written, oldest first; none before its first start.
    pub fn last_lines(&self, model: &str) -> Vec<String> {
        self.shared.last_lines(model)
    }

    /// Ends all servers, and returns when they have ended. Requests that wait are refused.
    pub async fn shut_down(&self) {
        self.shared.shut_down();
        let late = self.shared.config.grace + LAST_WAIT;
        if timeout(late, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!("model servers do not end; the supervisor kills them");
        }
        self.shared.end_supervisor().await;
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        self.shared.shut_down();
    }
}

/// Wakes the planner at its deadlines, until the model engines are dropped.
async fn keep_deadlines(shared: Weak<Shared>) {
    while let Some(strong) = shared.upgrade() {
        let (next, wake) = (strong.next_timeout(), strong.wake());
        drop(strong);
        tokio::select! {
            () = wake.notified() => {}
            () = async { match next {
                Some(at) => sleep_until(at.into()).await,
                None => pending().await,
            } } => {}
        }
    }
}
