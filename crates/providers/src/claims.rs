//! Names that only one task at a time may hold.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// The held names: at most one entry for each live [`Claim`].
pub(crate) struct Claims<N: Eq + Hash>(Mutex<HashMap<N, Arc<Notify>>>);

/// Holds a name until it is dropped or a newer claim takes the name over.
pub(crate) struct Claim<N: Eq + Hash> {
    claims: Arc<Claims<N>>,
    name: N,
    contested: Arc<Notify>,
}

impl<N: Eq + Hash> Default for Claims<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<N: Clone + Eq + Hash> Claims<N> {
    /// Takes the name over from its holder and notifies the holder.
    pub(crate) fn take_over(self: &Arc<Self>, name: N) -> Claim<N> {
        let contested = Arc::<Notify>::default();
        if let Some(older) = self.lock().insert(name.clone(), Arc::clone(&contested)) {
            older.notify_one();
        }
        Claim { claims: Arc::clone(self), name, contested }
    }

    /// Takes a free name. If the name is held, notifies its holder, which keeps it, and returns
    /// `None`.
    pub(crate) fn take_free(self: &Arc<Self>, name: N) -> Option<Claim<N>> {
        let mut names = self.lock();
        if let Some(holder) = names.get(&name) {
            holder.notify_one();
            return None;
        }
        let contested = Arc::<Notify>::default();
        names.insert(name.clone(), Arc::clone(&contested));
        Some(Claim { claims: Arc::clone(self), name, contested })
    }
}

impl<N: Eq + Hash> Claims<N> {
    fn lock(&self) -> MutexGuard<'_, HashMap<N, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<N: Eq + Hash> Claim<N> {
    /// Waits until another task claims the name.
    pub(crate) async fn contested(&self) {
        self.contested.notified().await;
    }
}

impl<N: Eq + Hash> Drop for Claim<N> {
    fn drop(&mut self) {
        let mut names = self.claims.lock();
        // A newer claim's entry stays.
        if names.get(&self.name).is_some_and(|holder| Arc::ptr_eq(holder, &self.contested)) {
            names.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_contested_by_a_newer_claim_of_the_same_name_only() {
        let names = Arc::new(Claims::default());
        let first = names.take_over("a");
        let _other = names.take_over("b");
        assert!(tokio::time::timeout(std::time::Duration::ZERO, first.contested()).await.is_err());
        let second = names.take_over("a");
        first.contested().await;
        assert!(names.take_free("a").is_none());
        second.contested().await;
    }

    #[test]
    fn a_name_is_given_back_once() {
        let names = Arc::new(Claims::default());
        let first = names.take_over("a");
        let second = names.take_over("a");
        drop(first);
        assert_eq!(names.lock().len(), 1, "it is the second's");
        drop(second);
        assert_eq!(names.lock().len(), 0);
        assert!(names.take_free("a").is_some());
    }
}
