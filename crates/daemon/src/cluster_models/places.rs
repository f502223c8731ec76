//! How many requests are under way with each member.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most requests that are under way at a time from one member to another.
pub(super) const MOST: usize = 64;

/// The places of requests, by member. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>);

impl Places {
    /// A place with this member; none if all are taken.
    pub(super) fn take(&self, node: &str) -> Option<OwnedSemaphorePermit> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_node =
            places.entry(node.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(MOST)));
        Arc::clone(of_node).try_acquire_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_its_own_places() {
        let places = Places::default();
        let taken: Vec<_> = (0..MOST).filter_map(|_| places.take("two")).collect();
        assert_eq!(taken.len(), MOST);
        assert!(places.take("two").is_none() && places.take("three").is_some());
        drop(taken);
        assert!(places.take("two").is_some());
    }
}
