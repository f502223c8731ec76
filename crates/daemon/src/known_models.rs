//! Which models were served and when, kept over a restart: for a model that comes back, jobs may wait.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use access::Moment;
use base::{ModelName, Scope};
use scheduler::{Observer, Scheduler};
use store::{AgeClock, ModelMemory, ModelStore, SqliteStore};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::storage::aged;

/// How often it is written when a known model was last seen. New models are written at once.
const FLUSH: Duration = Duration::from_secs(60);

/// The models that were served.
pub(crate) struct KnownModels {
    pub(crate) memory: Arc<ModelMemory>,
    /// By which models are forgotten.
    ages: Arc<AgeClock>,
    /// Notified of a new model, which a crash should not lose.
    new: Notify,
}

impl Observer for KnownModels {
    fn offers(&self, scope: &Scope, models: &[ModelName]) {
        // A room keeps its own models.
        if *scope == Scope::server() && self.memory.saw(scope, models, SystemTime::now()) {
            self.new.notify_one();
        }
    }
}

impl KnownModels {
    pub(crate) fn open(store: &Arc<SqliteStore>, ages: &Arc<AgeClock>) -> anyhow::Result<Self> {
        let store: Arc<dyn ModelStore> = Arc::<SqliteStore>::clone(store);
        let memory = Arc::new(ModelMemory::open(store, age(ages))?);
        Ok(Self { memory, ages: Arc::clone(ages), new: Notify::new() })
    }

    /// Writes new models at once, the others now and then, and everything at the end.
    pub(crate) async fn keep(self: Arc<Self>, scheduler: Scheduler, stop: CancellationToken) {
        let scope = Scope::server();
        while !stop.is_cancelled() {
            tokio::select! {
                () = self.new.notified() => {}
                () = tokio::time::sleep(FLUSH) => {}
                () = stop.cancelled() => {}
            }
            // No event comes for a model that is served without a break.
            self.memory.saw(&scope, &scheduler.models(&scope), SystemTime::now());
            self.flush().await;
        }
    }

    async fn flush(&self) {
        let (memory, ages) = (Arc::clone(&self.memory), Arc::clone(&self.ages));
        let flushed = tokio::task::spawn_blocking(move || memory.flush(age(&ages))).await;
        if let Ok(Err(error)) = flushed {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "models are not remembered over a restart");
        }
    }
}

/// The time by which models are forgotten.
fn age(ages: &AgeClock) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(aged(ages, Moment::now()))
}
