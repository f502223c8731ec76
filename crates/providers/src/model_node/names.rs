//! Which link is a node's newest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// A model, and the name of a node of it.
type Name = (String, String);

/// The newest link of each node. There is one entry for each link that stands.
#[derive(Default)]
pub(super) struct Names(Mutex<HashMap<Name, Arc<Notify>>>);

/// A link's place among the nodes, until it is dropped or a newer link takes it.
pub(super) struct Place {
    names: Arc<Names>,
    name: Name,
    taken: Arc<Notify>,
}

impl Names {
    /// A place for a new link. Whoever had it is told.
    pub(super) fn take(self: &Arc<Self>, model: &str, name: &str) -> Place {
        let name = (model.to_owned(), name.to_owned());
        let taken = Arc::new(Notify::new());
        if let Some(older) = self.lock().insert(name.clone(), Arc::clone(&taken)) {
            older.notify_one();
        }
        Place { names: Arc::clone(self), name, taken }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until a newer link takes this place.
    pub(super) async fn taken(&self) {
        self.taken.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut names = self.names.lock();
        let is_own = |newest: &Arc<Notify>| Arc::ptr_eq(newest, &self.taken);
        if names.get(&self.name).is_some_and(is_own) {
            names.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_newer_link_of_the_same_node_takes_a_place() {
        let names = Arc::new(Names::default());
        let first = names.take("m", "a");
        let (_other_name, _other_model) = (names.take("m", "b"), names.take("n", "a"));
        assert!(tokio::time::timeout(std::time::Duration::ZERO, first.taken()).await.is_err());
        let _second = names.take("m", "a");
        first.taken().await;
    }

    #[test]
    fn places_are_given_back_once() {
        let names = Arc::new(Names::default());
        let first = names.take("m", "a");
        let second = names.take("m", "a");
        drop(first);
        assert_eq!(names.lock().len(), 1, "it is the second's");
        drop(second);
        assert_eq!(names.lock().len(), 0);
    }
}
