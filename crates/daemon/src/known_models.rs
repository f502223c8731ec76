//! Which models were served and when, kept over a restart: jobs may wait for a model that comes back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use access::Moment;
use base::{ModelName, Scope};
use scheduler::{Announcement, Observer, Scheduler};
use store::{AgeClock, ModelMemory, ModelStore, SqliteStore};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::storage::aged;

/// How often the times are written at which known models were last seen. New models are written at once.
const FLUSH: Duration = Duration::from_secs(60);

/// The models that were served.
pub(crate) struct KnownModels {
    pub(crate) memory: Arc<ModelMemory>,
    /// The clock by which models are forgotten.
    ages: Arc<AgeClock>,
    places: Mutex<Places>,
    /// Notified of a new model, which a crash should not lose.
    new: Notify,
}

impl Observer for KnownModels {
    fn announced(&self, announcement: &Announcement<'_>) {
        let Announcement { scope, name, models, whole } = *announcement;
        // The models of rooms are not kept here.
        if *scope != Scope::server() {
            return;
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = places.announced(name, models, whole);
        drop(places);
        let new = self.memory.saw(scope, models, SystemTime::now());
        for model in &gone {
            tracing::info!(%model, last_seen_at = name, "a model is gone");
            self.memory.removed(scope, model, name);
        }
        if new || !gone.is_empty() {
            self.new.notify_one();
        }
    }
}

impl KnownModels {
    pub(crate) fn open(store: &Arc<SqliteStore>, ages: &Arc<AgeClock>) -> anyhow::Result<Self> {
        let store: Arc<dyn ModelStore> = Arc::<SqliteStore>::clone(store);
        let memory = Arc::new(ModelMemory::open(store, age(ages))?);
        Ok(Self { memory, ages: Arc::clone(ages), places: Mutex::default(), new: Notify::new() })
    }

    /// Writes new models at once, all others every minute, and everything when `stop` is cancelled.
    pub(crate) async fn keep(self: Arc<Self>, scheduler: Scheduler, stop: CancellationToken) {
        let scope = Scope::server();
        while !stop.is_cancelled() {
            tokio::select! {
                () = self.new.notified() => {}
                () = tokio::time::sleep(FLUSH) => {}
                () = stop.cancelled() => {}
            }
            // A model that is served without a break is not announced again, so its time is noted here.
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

/// The most providers that are remembered for a model, and the most models.
const MAX_PLACES: usize = 64;
const MAX_MODELS: usize = 10_000;

/// The names of the providers that have each model, whether they are connected or not. A provider that lost its link
/// still has its models. A provider that announces a whole list without a model has removed the model.
#[derive(Default)]
struct Places(BTreeMap<ModelName, BTreeSet<String>>);

impl Places {
    /// Notes an announcement; `whole` says that `models` are all models of the provider. Returns the models that no
    /// provider has any more.
    fn announced(&mut self, name: &str, models: &[ModelName], whole: bool) -> Vec<ModelName> {
        let mut gone = Vec::new();
        // A provider with a wildcard offers every model, so it has removed none.
        if whole && !models.iter().any(ModelName::is_wildcard) {
            let offered: BTreeSet<_> = models.iter().collect();
            self.0.retain(|model, places| {
                let removed = !offered.contains(model) && places.remove(name);
                let keeps = !places.is_empty();
                if removed && !keeps {
                    gone.push(model.clone());
                }
                keeps
            });
        }
        for model in models.iter().filter(|model| !model.is_wildcard()) {
            if self.0.len() < MAX_MODELS || self.0.contains_key(model) {
                let places = self.0.entry(model.clone()).or_default();
                if places.len() < MAX_PLACES {
                    places.insert(name.to_owned());
                }
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(models: &[&str]) -> Vec<ModelName> {
        models.iter().map(|model| ModelName::from(*model)).collect()
    }

    #[test]
    fn a_model_is_gone_when_the_last_that_had_it_says_so() {
        let mut places = Places::default();
        assert_eq!(places.announced("laptop", &list(&["m", "n"]), true), []);
        assert_eq!(places.announced("desktop", &list(&["n"]), true), []);
        assert_eq!(places.announced("laptop", &list(&["m"]), true), [], "the other has it");
        assert_eq!(places.announced("desktop", &[], false), [], "its backend is out of reach");
        assert_eq!(places.announced("desktop", &[], true), list(&["n"]));
        assert_eq!(places.announced("laptop", &list(&["o"]), true), list(&["m"]));
        assert_eq!(places.announced("laptop", &list(&["*"]), true), [], "it has them all");
        assert_eq!(places.0.len(), 1);
    }

    #[test]
    fn places_are_bounded() {
        let mut places = Places::default();
        for number in 0..2 * MAX_PLACES {
            places.announced(&number.to_string(), &list(&["m"]), true);
        }
        assert_eq!(places.0.values().map(BTreeSet::len).max(), Some(MAX_PLACES));
        let many: Vec<_> = (0..MAX_MODELS + 9).map(|n| ModelName::from(n.to_string())).collect();
        places.announced("w", &many, false);
        assert_eq!(places.0.len(), MAX_MODELS);
    }
}
