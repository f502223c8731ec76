//! A tick when something under a root has changed, without saying what.
//!
//! Directories are watched one by one, except for those that git ignores. If there are too many
//! (for one watch, for all, or for the kernel), or the root is missing, the tree is scanned
//! every few seconds instead. A watch ends when it is dropped.
//!
//! - `debounce`: when a tick is due; pure
//! - `worker`: the thread of a watch, which watches or polls
//! - `tree`: the watched directories
//! - `rules`: what git ignores, and where its own files are
//! - `poll`: a scan of a tree
//! - `total`: the bound on the directories of all watches

mod debounce;
mod poll;
mod rules;
#[cfg(test)]
mod tests;
mod total;
mod tree;
mod worker;

use std::{io, path::Path, sync::Arc, thread, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep_until, timeout},
};

pub use self::total::Watches;
use self::{debounce::Debounce, worker::Handle};

/// How long [`Watch::start`] waits until the directories of a large tree are watched, before it
/// returns anyway; the first tick comes when they are.
const START: Duration = Duration::from_secs(5);

/// The limits of one watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most directories that it watches. With more it polls.
    pub directories: usize,
    /// The most entries of one scan.
    pub polled: usize,
    /// The shortest wait between two scans.
    pub poll_every: Duration,
    /// The longest wait, when scans are slow.
    pub poll_at_most: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            directories: 4096,
            polled: 50_000,
            poll_every: Duration::from_secs(2),
            poll_at_most: Duration::from_secs(5),
        }
    }
}

/// How a watch learns of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The kernel reports them.
    Watching,
    /// It scans every few seconds.
    Polling,
}

/// Why there is no watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The root is missing, or is not a directory.
    #[error("the project's directory cannot be watched: {0}")]
    Root(#[source] io::Error),
    /// No thread could be started.
    #[error("no thread can be started to watch with: {0}")]
    Thread(#[source] io::Error),
    /// The thread ended before it watched.
    #[error("the project's directory is not watched: the server's log says why")]
    Ended,
}

/// The work of a watch, for a thread of its own. It runs as long as the watch.
pub type Work = Box<dyn FnOnce() + Send>;

/// The report of the thread: the number of changes, and how it learns of them.
#[derive(Debug, Clone, Copy)]
struct WatchReport {
    changes: u64,
    means: Means,
}

/// A subscription to one root. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watch {
    seen: watch::Receiver<WatchReport>,
    debounce: Debounce,
    ended: bool,
    _thread: Handle,
}

impl Watch {
    /// Watches a directory. Changes are seen from the return of this call on (in a very large tree,
    /// from a little later on, and then a tick tells so).
    ///
    /// # Errors
    ///
    /// [`WatchError`]. Too many directories are no error: they are polled.
    pub async fn start(
        root: &Path,
        limits: Limits,
        watches: &Arc<Watches>,
    ) -> Result<Self, WatchError> {
        let begin =
            |work: Work| thread::Builder::new().name("watch".to_owned()).spawn(work).map(drop);
        Self::start_on(root, limits, watches, begin).await
    }

    /// The same on a thread that `begin` starts, possibly with fewer rights than this process. What it
    /// may not read is not watched.
    ///
    /// # Errors
    ///
    /// As [`Watch::start`].
    pub async fn start_on(
        root: &Path,
        limits: Limits,
        watches: &Arc<Watches>,
        begin: impl FnOnce(Work) -> io::Result<()>,
    ) -> Result<Self, WatchError> {
        let (tell, seen) = watch::channel(WatchReport { changes: 0, means: Means::Polling });
        let (ready, is_ready) = oneshot::channel();
        let (thread, work) = worker::new(root.to_owned(), limits, watches.clone(), tell, ready);
        begin(work).map_err(WatchError::Thread)?;
        // If it is late, the thread goes on. `changed` reports it if the thread ends.
        if let Ok(told) = timeout(START, is_ready).await {
            told.map_err(|_| WatchError::Ended)??;
        }
        Ok(Self { seen, debounce: Debounce::default(), ended: false, _thread: thread })
    }

    /// How this watch currently learns of changes.
    #[must_use]
    pub fn means(&self) -> Means {
        self.seen.borrow().means
    }

    /// Waits until something has changed, and then for 300 ms of quiet; under constant change for
    /// a second at most. `None`: the watch has ended. The call may be dropped and repeated at any time.
    pub async fn changed(&mut self) -> Option<()> {
        loop {
            let due = self.debounce.due();
            if self.ended && due.is_none() {
                return None;
            }
            tokio::select! {
                more = self.seen.changed(), if !self.ended => match more {
                    Ok(()) => self.debounce.note(Instant::now()),
                    Err(_) => self.ended = true,
                },
                () = at(due) => {
                    self.debounce.tick(Instant::now());
                    return Some(());
                }
            }
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
