//! Remembers which models are served, over a restart too.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use base::{ModelName, Scope};
use scheduler::{Observer, Scheduler};
use store::{ModelMemory, ModelStore, SqliteStore};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How often the last sight of known models is written; new ones are written at once.
const FLUSH: Duration = Duration::from_secs(60);

/// Remembers which models are served.
pub(crate) struct Remember {
    pub(crate) memory: Arc<ModelMemory>,
    /// Something was learnt that a crash should not lose.
    new: Notify,
}

impl Observer for Remember {
    fn offers(&self, scope: &Scope, models: &[ModelName]) {
        // Of a room's models it is the room that knows which are worth waiting for.
        if *scope == Scope::server() && self.memory.saw(scope, models, SystemTime::now()) {
            self.new.notify_one();
        }
    }
}

impl Remember {
    pub(crate) fn open(store: &Arc<SqliteStore>) -> anyhow::Result<Self> {
        let store: Arc<dyn ModelStore> = Arc::<SqliteStore>::clone(store);
        let memory = Arc::new(ModelMemory::open(store, SystemTime::now())?);
        Ok(Self { memory, new: Notify::new() })
    }

    /// Writes what was learnt: what is new at once, the rest now and then, and all at the end.
    pub(crate) async fn keep(self: Arc<Self>, scheduler: Scheduler, stop: CancellationToken) {
        let scope = Scope::server();
        while !stop.is_cancelled() {
            tokio::select! {
                () = self.new.notified() => {}
                () = tokio::time::sleep(FLUSH) => {}
                () = stop.cancelled() => {}
            }
            // A model that is served all the time is seen all the time.
            self.memory.saw(&scope, &scheduler.models(&scope), SystemTime::now());
            self.flush().await;
        }
    }

    async fn flush(&self) {
        let memory = Arc::clone(&self.memory);
        let flushed = tokio::task::spawn_blocking(move || memory.flush(SystemTime::now())).await;
        if let Ok(Err(error)) = flushed {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "models are not remembered over a restart");
        }
    }
}
