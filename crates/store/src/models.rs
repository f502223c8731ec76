//! Which models have been served, and when last.
//!
//! A request for a model that was served before waits for the model to come back. A request for a model
//! that was never served is refused at once. So this memory is stored, and models that are unseen for long are
//! forgotten.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use base::{ModelName, Scope};

use crate::StoreError;

/// The most models that are remembered; the longest unseen are forgotten first.
pub const MAX_MODELS: usize = 10_000;

/// How long a model is remembered.
pub const MEMORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The most removed models that are remembered. Beyond that, all of them are forgotten.
pub const MAX_GONE: usize = 1_000;

/// A model that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenModel {
    /// Its scope.
    pub scope: Scope,
    /// Its name.
    pub model: ModelName,
    /// When it was first seen, in seconds since 1970.
    pub first: u64,
    /// When it was last seen, in seconds since 1970.
    pub last: u64,
}

/// A store of seen models.
pub trait ModelStore: Send + Sync {
    /// All stored models.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load_models(&self) -> Result<Vec<SeenModel>, StoreError>;

    /// Stores these, replaces those of the same names, and deletes all last seen before
    /// `oldest`.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn save_models(&self, models: &[SeenModel], oldest: u64) -> Result<(), StoreError>;
}

/// The models that a running server remembers: read in memory, written by [`ModelMemory::flush`].
pub struct ModelMemory {
    store: Arc<dyn ModelStore>,
    state: Mutex<RememberedModels>,
}

#[derive(Default)]
struct RememberedModels {
    models: HashMap<(Scope, ModelName), Times>,
    /// Removed models, and where they were last seen. Not stored.
    gone: HashMap<(Scope, ModelName), String>,
}

#[derive(Clone, Copy)]
struct Times {
    first: u64,
    /// 0 for a model that was removed.
    last: u64,
    /// Whether the store does not have these times yet.
    dirty: bool,
}

impl Times {
    /// Whether the model was removed, and has to be deleted from the store.
    const fn is_removed(&self) -> bool {
        self.last == 0
    }
}

impl ModelMemory {
    /// Loads the memory from `store`, without models that are too old at `now`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(store: Arc<dyn ModelStore>, now: SystemTime) -> Result<Self, StoreError> {
        let oldest = oldest(now);
        let mut state = RememberedModels::default();
        for seen in store.load_models()?.into_iter().filter(|seen| seen.last >= oldest) {
            let times = Times { first: seen.first, last: seen.last, dirty: false };
            state.models.insert((seen.scope, seen.model), times);
        }
        state.forget();
        Ok(Self { store, state: Mutex::new(state) })
    }

    /// Whether the model was served within [`MEMORY`], and was not removed since.
    pub fn knows(&self, scope: &Scope, model: &ModelName) -> bool {
        let state = self.lock();
        state.models.get(&(scope.clone(), model.clone())).is_some_and(|times| times.last > 0)
    }

    /// When the model was first seen, in seconds since 1970.
    pub fn first_seen(&self, scope: &Scope, model: &ModelName) -> Option<u64> {
        self.lock().models.get(&(scope.clone(), model.clone())).map(|times| times.first)
    }

    /// Forgets a model that was removed from the provider that had it last: requests do not wait for it.
    /// `last_seen_at` names that provider.
    pub fn removed(&self, scope: &Scope, model: &ModelName, last_seen_at: &str) {
        let mut state = self.lock();
        let name = (scope.clone(), model.clone());
        if let Some(times) = state.models.get_mut(&name) {
            // So old that the next flush deletes it from the store.
            *times = Times { last: 0, dirty: true, ..*times };
        }
        if state.gone.len() >= MAX_GONE {
            state.gone.clear();
        }
        state.gone.insert(name, last_seen_at.to_owned());
    }

    /// Where a removed model was last seen.
    pub fn gone_from(&self, scope: &Scope, model: &ModelName) -> Option<String> {
        self.lock().gone.get(&(scope.clone(), model.clone())).cloned()
    }

    /// Notes that these models are served at `now`. `*` is skipped. Returns whether one of them is new, and so
    /// worth a [`ModelMemory::flush`] at once.
    pub fn saw(&self, scope: &Scope, models: &[ModelName], now: SystemTime) -> bool {
        let now = seconds(now);
        let mut state = self.lock();
        let before = state.models.len();
        for model in models.iter().filter(|model| !model.is_wildcard()) {
            let times = state.models.entry((scope.clone(), model.clone())).or_insert(Times {
                first: now,
                last: now,
                dirty: true,
            });
            times.last = times.last.max(now);
            times.dirty = true;
            state.gone.remove(&(scope.clone(), model.clone()));
        }
        let new = state.models.len() > before;
        state.forget();
        new
    }

    /// Writes the changes, and forgets models that are too old at `now`. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be written; the next flush tries again.
    pub fn flush(&self, now: SystemTime) -> Result<(), StoreError> {
        let oldest = oldest(now);
        let changed = {
            let mut state = self.lock();
            // Removed models are among these, with the time 0: so `save_models` deletes them.
            let changed = state.take_dirty();
            state.models.retain(|_, times| times.last >= oldest || times.is_removed());
            changed
        };
        let saved = self.store.save_models(&changed, oldest);
        let mut state = self.lock();
        match &saved {
            Ok(()) => state.models.retain(|_, times| times.dirty || !times.is_removed()),
            Err(_) => state.mark_dirty(&changed),
        }
        drop(state);
        saved
    }

    fn lock(&self) -> MutexGuard<'_, RememberedModels> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RememberedModels {
    /// Forgets the models unseen for longest when there are too many.
    fn forget(&mut self) {
        let over = self.models.len().saturating_sub(MAX_MODELS);
        if over == 0 {
            return;
        }
        let mut last: Vec<u64> = self.models.values().map(|times| times.last).collect();
        let (_, limit, _) = last.select_nth_unstable(over - 1);
        let limit = *limit;
        let mut left = over;
        self.models.retain(|_, times| {
            let forgotten = left > 0 && times.last <= limit;
            left -= usize::from(forgotten);
            !forgotten
        });
    }

    fn take_dirty(&mut self) -> Vec<SeenModel> {
        let dirty = self.models.iter_mut().filter(|(_, times)| times.dirty);
        dirty
            .map(|((scope, model), times)| {
                times.dirty = false;
                let (scope, model) = (scope.clone(), model.clone());
                SeenModel { scope, model, first: times.first, last: times.last }
            })
            .collect()
    }

    fn mark_dirty(&mut self, models: &[SeenModel]) {
        for seen in models {
            if let Some(times) = self.models.get_mut(&(seen.scope.clone(), seen.model.clone())) {
                times.dirty = true;
            }
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    base::since_1970(time).as_secs()
}

fn oldest(now: SystemTime) -> u64 {
    seconds(now).saturating_sub(MEMORY.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VolatileStore;

    fn at(secs: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + MEMORY + Duration::from_secs(secs)
    }

    fn memory(store: &Arc<VolatileStore>, now: SystemTime) -> ModelMemory {
        let store: Arc<dyn ModelStore> = Arc::<VolatileStore>::clone(store);
        ModelMemory::open(store, now).unwrap()
    }

    #[test]
    fn a_removed_model_is_not_waited_for_until_it_is_seen_again() {
        let store = Arc::new(VolatileStore::default());
        let (memory_now, scope, model) = (memory(&store, at(0)), Scope::server(), "m".into());
        memory_now.saw(&scope, &["m".into(), "n".into()], at(0));
        memory_now.flush(at(0)).unwrap();
        memory_now.removed(&scope, &model, "laptop");
        assert!(!memory_now.knows(&scope, &model) && memory_now.knows(&scope, &"n".into()));
        assert_eq!(memory_now.gone_from(&scope, &model).as_deref(), Some("laptop"));
        memory_now.flush(at(1)).unwrap();
        assert!(!memory(&store, at(2)).knows(&scope, &model), "after a restart");
        memory_now.saw(&scope, &["m".into()], at(3));
        assert!(memory_now.knows(&scope, &model) && memory_now.gone_from(&scope, &model).is_none());
    }

    #[test]
    fn removed_models_are_remembered_within_a_bound() {
        let memory = memory(&Arc::new(VolatileStore::default()), at(0));
        let scope = Scope::server();
        for number in 0..3 * MAX_GONE {
            memory.removed(&scope, &number.to_string().into(), "w");
        }
        assert!(memory.lock().gone.len() <= MAX_GONE && memory.lock().models.is_empty());
    }

    #[test]
    fn models_survive_a_restart_for_a_week() {
        let store = Arc::new(VolatileStore::default());
        let scope = Scope::server();
        let first = memory(&store, at(0));
        assert!(first.saw(&scope, &["m".into(), "*".into()], at(0)), "new");
        assert!(!first.saw(&scope, &["m".into()], at(0)), "known");
        first.flush(at(0)).unwrap();
        assert!(!first.knows(&scope, &"*".into()));
        let second = memory(&store, at(MEMORY.as_secs()));
        assert!(second.knows(&scope, &"m".into()));
        assert_eq!(second.first_seen(&scope, &"m".into()), Some(MEMORY.as_secs()));
        let third = memory(&store, at(MEMORY.as_secs() + 1));
        assert!(!third.knows(&scope, &"m".into()));
    }

    #[test]
    fn the_longest_unseen_are_forgotten_over_the_bound() {
        let store = Arc::new(VolatileStore::default());
        let scope = Scope::server();
        let memory = memory(&store, at(0));
        memory.saw(&scope, &["old".into()], at(0));
        let many: Vec<ModelName> =
            (0..MAX_MODELS).map(|number| ModelName::from(format!("m{number}"))).collect();
        memory.saw(&scope, &many, at(1));
        assert!(!memory.knows(&scope, &"old".into()));
        assert!(many.iter().all(|model| memory.knows(&scope, model)));
        assert_eq!(memory.lock().models.len(), MAX_MODELS);
    }

    #[test]
    fn a_failed_write_is_repeated_later() {
        let store = Arc::new(VolatileStore::default());
        let memory = memory(&store, at(0));
        memory.saw(&Scope::server(), &["m".into()], at(0));
        store.fail_writes(true);
        assert!(memory.flush(at(0)).is_err());
        store.fail_writes(false);
        memory.flush(at(0)).unwrap();
        assert_eq!(store.load_models().unwrap().len(), 1);
        memory.removed(&Scope::server(), &"m".into(), "laptop");
        store.fail_writes(true);
        assert!(memory.flush(at(1)).is_err());
        store.fail_writes(false);
        memory.flush(at(1)).unwrap();
        assert_eq!(store.load_models().unwrap(), [], "also the deletion of a removed model");
        assert!(memory.lock().models.is_empty());
    }
}
