//! The objects of all members, as they are shown now.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak},
};

use replica::{Entry, Key, Kind};

use crate::changes::{Changed, Changes};

/// Gets every change of the directory. It is called by the one task that changes the directory, and
/// must not wait.
pub trait Watcher: Send + Sync {
    /// An object changed: it was `before`, and is `now`.
    fn changed(&self, key: &Key, before: Option<&Entry>, now: Option<&Entry>);
}

/// The objects of all members, as they are shown now.
#[derive(Default)]
pub struct Directory {
    entries: RwLock<BTreeMap<Key, Arc<Entry>>>,
    watcher: OnceLock<Arc<dyn Watcher>>,
    followers: Mutex<Vec<Weak<Changes>>>,
}

impl Directory {
    /// Sets the watcher of changes. Called once.
    pub fn set_watcher(&self, watcher: Arc<dyn Watcher>) {
        let _set_before = self.watcher.set(watcher);
    }

    /// The changes from now on. They are gathered until the returned value is dropped.
    pub(crate) fn follow(&self) -> Arc<Changes> {
        let changes = Arc::<Changes>::default();
        self.followers().push(Arc::downgrade(&changes));
        changes
    }

    /// An object.
    pub fn get(&self, kind: Kind, id: &str) -> Option<Arc<Entry>> {
        self.entries().get(&Key::new(kind, id)).cloned()
    }

    /// All objects of a kind, by id.
    pub fn list(&self, kind: Kind) -> Vec<(Key, Arc<Entry>)> {
        let from = Key::new(kind, "");
        let entries = self.entries();
        let of_kind = entries.range(from..).take_while(|(key, _)| key.kind == kind);
        of_kind.map(|(key, entry)| (key.clone(), Arc::clone(entry))).collect()
    }

    /// All objects of a member.
    pub(crate) fn of_owner(&self, node: &str) -> BTreeSet<Key> {
        let entries = self.entries();
        let own = entries.iter().filter(|(_, entry)| entry.owner.as_str() == node);
        own.map(|(key, _)| key.clone()).collect()
    }

    /// Takes in a change, and reports it.
    pub(crate) fn change(&self, key: &Key, now: Option<&Arc<Entry>>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before = match now {
            Some(entry) => entries.insert(key.clone(), Arc::clone(entry)),
            None => entries.remove(key),
        };
        drop(entries);
        if let Some(watcher) = self.watcher.get() {
            watcher.changed(key, before.as_deref(), now.map(|now| &**now));
        }
        if let Some(changed) = Changed::new(before.as_deref(), now.map(|now| &**now)) {
            self.tell_followers(key, &changed);
        }
    }

    /// Removes all objects, and reports each.
    pub(crate) fn clear(&self) {
        let keys: Vec<Key> = self.entries().keys().cloned().collect();
        keys.iter().for_each(|key| self.change(key, None));
    }

    fn tell_followers(&self, key: &Key, changed: &Changed) {
        self.followers().retain(|follower| {
            let follower = follower.upgrade();
            if let Some(follower) = &follower {
                follower.put(key.clone(), changed.clone());
            }
            follower.is_some()
        });
    }

    fn followers(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Changes>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Key, Arc<Entry>>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }
}
