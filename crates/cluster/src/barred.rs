//! The keys of machines that were members and are not any more. None of them can link again before
//! it is invited again, even after its tombstone was dropped.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base::NodeId;
use store::{Change, Fact, StoreError};
use tokio::task;

use crate::{
    error::ClusterError,
    facts::{BARRED as KIND, Facts},
};

/// The most keys that are kept. Above it, the lowest of the others is dropped.
const MOST: usize = protocol::workspace::limits::BARRED_MAX;

/// The barred keys.
#[derive(Default)]
pub(crate) struct Barred {
    keys: Mutex<BTreeMap<NodeId, Stored>>,
    /// One change at a time is stored, so that the disk and the memory have the last one.
    turn: tokio::sync::Mutex<()>,
}

/// Whether a barred key is stored. One that could not be stored is barred all the same.
type Stored = bool;

impl Barred {
    pub(crate) async fn load(facts: &Facts) -> Result<Self, ClusterError> {
        let facts = facts.clone();
        let rows = task::spawn_blocking(move || facts.all(KIND)).await;
        let rows = rows.map_err(|_| ClusterError::Failed)??;
        let keys = rows.iter().filter_map(|row| Some((row.id.parse().ok()?, true)));
        Ok(Self { keys: Mutex::new(keys.collect()), ..Self::default() })
    }

    pub(crate) fn has(&self, key: &NodeId) -> bool {
        self.lock().contains_key(key)
    }

    /// All barred keys.
    pub(crate) fn all(&self) -> Vec<NodeId> {
        self.lock().keys().copied().collect()
    }

    /// Bars a key from now on. It is stored when this returns without an error; after an error it
    /// is barred until the next start, and stored by the next call.
    pub(crate) async fn bar(&self, facts: &Facts, key: NodeId) -> Result<(), ClusterError> {
        // Barred before the turn, since the store may be slow.
        let dropped = self.insert(key);
        let _turn = self.turn.lock().await;
        let is_due = self.lock().get(&key) == Some(&false);
        let changes = dropped.iter().map(forgotten).chain(is_due.then(|| kept(&key)));
        let changes: Vec<Change> = changes.collect();
        if changes.is_empty() {
            return Ok(());
        }
        store(facts, changes).await?;
        self.lock().entry(key).and_modify(|stored| *stored = true);
        Ok(())
    }

    /// Unbars the key of a machine that is a member again. Stored when this returns; after an error
    /// it is still barred.
    pub(crate) async fn admit(&self, facts: &Facts, key: &NodeId) -> Result<(), ClusterError> {
        let _turn = self.turn.lock().await;
        if !self.has(key) {
            return Ok(());
        }
        store(facts, vec![forgotten(key)]).await?;
        self.lock().remove(key);
        Ok(())
    }

    /// Adds a key. Returns the key that is dropped for it.
    fn insert(&self, key: NodeId) -> Option<NodeId> {
        let mut keys = self.lock();
        keys.entry(key).or_insert(false);
        let is_full = keys.len() > MOST;
        let lowest = keys.keys().find(|other| is_full && **other != key).copied()?;
        keys.remove(&lowest);
        Some(lowest)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Stored>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kept(key: &NodeId) -> Change {
    let (kind, id) = (KIND.to_owned(), key.to_string());
    Change::Keep(Fact { kind, id, json: "{}".to_owned() })
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

    fn key(number: u16) -> NodeId {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        NodeId::new(bytes)
    }

    #[tokio::test]
    async fn what_could_not_be_stored_is_stored_by_the_next_call() {
        let store = Arc::new(VolatileStore::default());
        let facts = Facts::new(Arc::<VolatileStore>::clone(&store));
        let barred = Barred::default();
        store.fail_writes(true);
        assert!(barred.bar(&facts, key(1)).await.is_err());
        assert!(barred.has(&key(1)), "it is barred all the same");
        assert!(barred.bar(&facts, key(1)).await.is_err());
        store.fail_writes(false);
        barred.bar(&facts, key(1)).await.unwrap();
        assert!(Barred::load(&facts).await.unwrap().has(&key(1)));
        store.fail_writes(true);
        assert!(barred.admit(&facts, &key(1)).await.is_err());
        store.fail_writes(false);
        barred.admit(&facts, &key(1)).await.unwrap();
        assert!(!barred.has(&key(1)) && !Barred::load(&facts).await.unwrap().has(&key(1)));
    }

    #[tokio::test]
    async fn the_key_that_is_barred_last_is_kept_at_the_bound() {
        let facts = Facts::new(Arc::new(VolatileStore::default()));
        let barred = Barred::default();
        for number in (0..=MOST as u16).rev() {
            barred.bar(&facts, key(number)).await.unwrap();
        }
        assert!(barred.has(&key(0)) && !barred.has(&key(1)));
        let loaded = Barred::load(&facts).await.unwrap();
        assert_eq!(loaded.all(), barred.all());
    }

    #[tokio::test]
    async fn barred_keys_are_stored_and_bounded() {
        let facts = Facts::new(Arc::new(VolatileStore::default()));
        let barred = Barred::default();
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
