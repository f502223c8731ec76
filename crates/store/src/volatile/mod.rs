//! Durable state that is not: kept in memory, for tests.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use base::{ModelName, Scope};

use crate::{ModelStore, SeenModel, StoreError};

/// A store in memory.
#[derive(Default)]
pub struct VolatileStore {
    models: Mutex<HashMap<(Scope, ModelName), SeenModel>>,
    failing: AtomicBool,
}

impl VolatileStore {
    /// From now on writing fails, or no longer does: for tests of what happens then.
    pub fn fail_writes(&self, fail: bool) {
        self.failing.store(fail, Ordering::Relaxed);
    }
}

impl ModelStore for VolatileStore {
    fn load_models(&self) -> Result<Vec<SeenModel>, StoreError> {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(models.values().cloned().collect())
    }

    fn save_models(&self, models: &[SeenModel], oldest: u64) -> Result<(), StoreError> {
        if self.failing.load(Ordering::Relaxed) {
            return Err(StoreError::Database {
                path: "memory".to_owned(),
                hint: "it was told to fail",
                source: rusqlite::Error::InvalidQuery,
            });
        }
        let mut kept = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        for seen in models {
            kept.insert((seen.scope.clone(), seen.model.clone()), seen.clone());
        }
        kept.retain(|_, seen| seen.last >= oldest);
        Ok(())
    }
}
