//! One request at a time for a repository.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, PoisonError, Weak},
};

use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};

use super::{Git, GitError, work_tree::WorkTree};

/// The most requests for one repository at once: the one that runs and those that wait for it.
const WAITING: usize = 16;
/// The most repositories that have a request at once.
const REPOSITORIES: usize = 1024;

/// The lock of each repository with a request.
#[derive(Debug, Default)]
pub(super) struct Turns(std::sync::Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>);

impl Turns {
    /// The lock of a repository. It is dropped when no request uses it any more.
    fn of(&self, place: &WorkTree) -> Result<Arc<Mutex<()>>, GitError> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&place.top).and_then(Weak::upgrade) {
            let waiting = Arc::strong_count(&turn);
            return if waiting > WAITING { Err(GitError::Busy) } else { Ok(turn) };
        }
        if turns.len() >= REPOSITORIES {
            return Err(GitError::Busy);
        }
        let turn = Arc::default();
        turns.insert(place.top.clone(), Arc::downgrade(&turn));
        Ok(turn)
    }
}

impl Git {
    /// Waits for the repository's turn, at most as long as a command may take. The turn lasts until
    /// the returned guard is dropped.
    pub(super) async fn turn(&self, place: &WorkTree) -> Result<OwnedMutexGuard<()>, GitError> {
        let repository = self.turns.of(place)?;
        timeout(self.settings.time_out, repository.lock_owned()).await.map_err(|_| GitError::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: String) -> WorkTree {
        WorkTree::new(PathBuf::from(&name), PathBuf::from(name)).unwrap()
    }

    #[test]
    fn repositories_are_counted_as_long_as_somebody_asks_them() {
        let turns = Turns::default();
        let held: Vec<_> =
            (0..REPOSITORIES).map(|n| turns.of(&place(format!("/{n}"))).unwrap()).collect();
        assert!(matches!(turns.of(&place("/new".into())), Err(GitError::Busy)));
        assert!(turns.of(&place("/0".into())).is_ok());
        drop(held);
        assert!(turns.of(&place("/new".into())).is_ok());
        assert_eq!(turns.0.lock().unwrap().len(), 1);
    }
}
