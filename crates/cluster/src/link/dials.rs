//! The tasks that keep links, one for each target, and the delays between their dials.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    time::Duration,
};

use base::Backoff;
use tokio_util::task::AbortOnDropHandle;

/// The delays between two dials of one target.
const FIRST: Duration = Duration::from_millis(200);
const LAST: Duration = Duration::from_secs(30);
/// After a link that stood for this long, the delays start from the first again.
pub(crate) const STOOD: Duration = Duration::from_secs(1);

/// The delays between the dials of one target.
pub(crate) fn backoff() -> Backoff {
    Backoff::new(FIRST, LAST)
}

/// The tasks, by target. Dropping a handle ends its task, and with it the link that it opened.
pub(crate) struct Dials<T>(BTreeMap<T, AbortOnDropHandle<()>>);

impl<T> Default for Dials<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Dials<T> {
    /// Ends the tasks of former targets, and starts those of new ones: at most `most` tasks run.
    pub(crate) fn follow<F>(&mut self, targets: BTreeSet<T>, most: usize, keep: impl Fn(T) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.0.retain(|target, _| targets.contains(target));
        for target in targets {
            if !self.0.contains_key(&target) && self.0.len() < most {
                let task = tokio::spawn(keep(target.clone()));
                self.0.insert(target, AbortOnDropHandle::new(task));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn a_task_runs_for_each_target_within_the_bound() {
        let (mut dials, begun) = (Dials::default(), Arc::<Mutex<Vec<char>>>::default());
        let mut follow = |targets: &str| {
            dials.follow(targets.chars().collect(), 2, |target| {
                begun.lock().unwrap().push(target);
                std::future::pending()
            });
            std::mem::take(&mut *begun.lock().unwrap()).into_iter().collect::<String>()
        };
        assert_eq!(follow("abc"), "ab");
        assert_eq!(follow("abc"), "");
        assert_eq!(follow("bc"), "c", "in the place of one that ended");
    }
}
