//! Changes of the directory, gathered for a task that reads them at its own pace.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use replica::{Entry, Key, NodeId};
use tokio::sync::Notify;

/// The most objects whose changes wait for a reader.
const MOST: usize = 65_536;

/// How an object changed. A later change of the same object replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The owner of the object, or of its last version if it is gone.
    pub(crate) owner: NodeId,
    /// The writer of a version with a stamp.
    pub(crate) writer: Option<NodeId>,
    pub(crate) is_gone: bool,
}

impl Changed {
    /// `None` if the object neither existed before nor exists now.
    pub(crate) fn new(before: Option<&Entry>, now: Option<&Entry>) -> Option<Self> {
        let entry = now.or(before)?;
        let (owner, writer) = (entry.owner.clone(), entry.writer().cloned());
        Some(Self { owner, writer, is_gone: now.is_none() })
    }
}

/// The reader was too slow, and must look at all objects again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

/// Changes that one reader has not taken yet.
#[derive(Default)]
pub(crate) struct Changes {
    gathered: Mutex<Gathered>,
    some: Notify,
}

#[derive(Default)]
struct Gathered {
    changes: BTreeMap<Key, Changed>,
    is_over: bool,
}

impl Changes {
    /// Adds a change. Never waits.
    pub(crate) fn put(&self, key: Key, changed: Changed) {
        let mut gathered = self.lock();
        if gathered.changes.len() >= MOST && !gathered.changes.contains_key(&key) {
            gathered.changes.clear();
            gathered.is_over = true;
        }
        if !gathered.is_over {
            gathered.changes.insert(key, changed);
        }
        drop(gathered);
        self.some.notify_one();
    }

    /// All changes since the last call, once there are any. Cancel safe.
    ///
    /// # Errors
    /// [`TooMany`] from then on, if more changes than the bound were not taken.
    pub(crate) async fn next(&self) -> Result<BTreeMap<Key, Changed>, TooMany> {
        loop {
            // `notify_one` keeps one permit, so a change between the look and the wait is not
            // missed.
            let some = self.some.notified();
            {
                let mut gathered = self.lock();
                if gathered.is_over {
                    return Err(TooMany);
                }
                if !gathered.changes.is_empty() {
                    return Ok(std::mem::take(&mut gathered.changes));
                }
            }
            some.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use replica::Kind;

    use super::*;

    fn changed(owner: &str) -> Changed {
        Changed { owner: owner.into(), writer: None, is_gone: false }
    }

    fn key(number: usize) -> Key {
        Key::new(Kind::SESSION, number.to_string())
    }

    #[tokio::test]
    async fn changes_of_one_object_are_one_change() {
        let changes = Changes::default();
        changes.put(key(1), changed("a"));
        changes.put(key(1), changed("b"));
        assert_eq!(changes.next().await, Ok([(key(1), changed("b"))].into()));
    }

    #[tokio::test]
    async fn a_reader_that_never_reads_costs_bounded_memory() {
        let changes = Changes::default();
        (0..=MOST).for_each(|number| changes.put(key(number), changed("a")));
        assert_eq!(changes.lock().changes.len(), 0);
        changes.put(key(1), changed("a"));
        assert_eq!(changes.next().await, Err(TooMany));
    }
}
