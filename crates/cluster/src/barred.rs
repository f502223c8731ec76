//! The keys of machines that were members and are not any more. None of them can link again before
//! it is invited again, even after its tombstone was dropped.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base::NodeId;
use store::{Change, Fact, StoreError};
use tokio::task;

use crate::{
    error::ClusterError,
    facts::{BARRED as KIND, Facts},
};

/// The most keys that are kept. Above it, the lowest is dropped.
const MOST: usize = protocol::workspace::limits::BARRED_MAX;

/// The barred keys.
#[derive(Default)]
pub(crate) struct Barred(Mutex<BTreeSet<NodeId>>);

impl Barred {
    pub(crate) async fn load(facts: &Facts) -> Result<Self, ClusterError> {
        let facts = facts.clone();
        let rows = task::spawn_blocking(move || facts.all(KIND)).await;
        let rows = rows.map_err(|_| ClusterError::Failed)??;
        let keys = rows.iter().filter_map(|row| row.id.parse().ok());
        Ok(Self(Mutex::new(keys.collect())))
    }

    pub(crate) fn has(&self, key: &NodeId) -> bool {
        self.lock().contains(key)
    }

    /// All barred keys.
    pub(crate) fn all(&self) -> Vec<NodeId> {
        self.lock().iter().copied().collect()
    }

    /// Bars a key from now on. It is stored when this returns.
    pub(crate) async fn bar(&self, facts: &Facts, key: NodeId) -> Result<(), ClusterError> {
        let mut changes = Vec::new();
        {
            let mut keys = self.lock();
            if !keys.insert(key) {
                return Ok(());
            }
            if keys.len() > MOST {
                changes.extend(keys.pop_first().map(|lowest| forgotten(&lowest)));
            }
        }
        let (kind, id) = (KIND.to_owned(), key.to_string());
        changes.push(Change::Keep(Fact { kind, id, json: "{}".to_owned() }));
        store(facts, changes).await
    }

    /// Unbars the key of a machine that is a member again. Stored when this returns.
    pub(crate) async fn admit(&self, facts: &Facts, key: &NodeId) -> Result<(), ClusterError> {
        match self.lock().remove(key) {
            true => {}
            false => return Ok(()),
        }
        store(facts, vec![forgotten(key)]).await
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forgotten(key: &NodeId) -> Change {
    Change::Forget { kind: KIND.to_owned(), id: key.to_string() }
}

async fn store(facts: &Facts, changes: Vec<Change>) -> Result<(), ClusterError> {
    let facts = facts.clone();
    let stored = task::spawn_blocking(move || facts.keep_settings(&changes)).await;
    let stored: Result<(), StoreError> = stored.map_err(|_| ClusterError::Failed)?;
    Ok(stored?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::VolatileStore;

    use super::*;

    #[tokio::test]
    async fn barred_keys_are_stored_and_bounded() {
        let facts = Facts::new(Arc::new(VolatileStore::default()));
        let barred = Barred::default();
        let key = |number: u16| {
            let mut bytes = [0; 32];
            bytes[..2].copy_from_slice(&number.to_be_bytes());
            NodeId::new(bytes)
        };
        for number in 0..=MOST as u16 {
            barred.bar(&facts, key(number)).await.unwrap();
        }
        assert!(!barred.has(&key(0)) && barred.has(&key(MOST as u16)));
        barred.admit(&facts, &key(1)).await.unwrap();
        let loaded = Barred::load(&facts).await.unwrap();
        assert!(!loaded.has(&key(0)) && !loaded.has(&key(1)) && loaded.has(&key(2)));
        assert_eq!(loaded.lock().len(), MOST - 1);
    }
}
