//! Reports that something under a root has changed, as a tick that does not say what.
//!
//! Directories are watched one by one, except for those that git ignores. The tree is scanned every
//! few seconds instead if the root is missing, or if there are too many directories for one watch,
//! for all watches together, or for the kernel, until there is room again. A watch ends when it is dropped.
//!
//! - `debounce`: computes when a tick is due; pure
//! - `worker`: the thread of a watch, which watches or polls
//! - `tree`: the watched directories
//! - `rules`: which paths git ignores, and where its own files are
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

/// The longest time that [`Watch::start`] waits until the directories of a large tree are watched.
/// If it returns before they are, a tick comes once they are.
const START: Duration = Duration::from_secs(5);

/// The limits of one watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most directories that one watch watches. A larger tree is polled while it is larger.
    pub directories: usize,
    /// The most entries of one scan. Changes in the rest of a larger tree are not noticed.
    pub polled: usize,
    /// The shortest wait between two scans.
    pub poll_every: Duration,
    /// The longest wait between two scans, when scans are slow.
    pub poll_at_most: Duration,
    /// The shortest wait until a polled tree that fits is watched again.
    pub watch_again: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            directories: 4096,
            polled: 50_000,
            poll_every: Duration::from_secs(2),
            poll_at_most: Duration::from_secs(5),
            watch_again: Duration::from_secs(60),
        }
    }
}

/// The means by which a watch learns of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The kernel reports changes.
    Watching,
    /// The watch scans the tree every few seconds.
    Polling,
}

/// The reason why there is no watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The root is missing, or is not a directory.
    #[error("the project's directory cannot be watched: {0}")]
    Root(#[source] io::Error),
    /// No thread could be started.
    #[error("no thread can be started to watch with: {0}")]
    Thread(#[source] io::Error),
    /// The thread ended before it watched the directory.
    #[error("the project's directory is not watched: the server's log says why")]
    Ended,
}

/// The work of a watch, for a thread of its own. It runs until the watch is dropped.
pub type Work = Box<dyn FnOnce() + Send>;

/// The thread's report: the number of changes, and the means by which it learns of them.
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
    /// Watches a directory. Changes after the return of this call are seen. If a very large tree takes longer than
    /// five seconds, changes are seen only later; a tick then says that something may have changed before.
    ///
    /// # Errors
    ///
    /// [`WatchError`]. Too many directories are not an error: the tree is polled.
    pub async fn start(
        root: &Path,
        limits: Limits,
        watches: &Arc<Watches>,
    ) -> Result<Self, WatchError> {
        let begin =
            |work: Work| thread::Builder::new().name("watch".to_owned()).spawn(work).map(drop);
        Self::start_on(root, limits, watches, begin).await
    }

    /// [`Watch::start`] on a thread that `begin` starts, possibly with fewer rights than this process.
    /// Directories that the thread may not read are not watched.
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
        // A thread that is late goes on after this. If it fails, it ends, and `changed` returns `None`.
        if let Ok(result) = timeout(START, is_ready).await {
            result.map_err(|_| WatchError::Ended)??;
        }
        Ok(Self { seen, debounce: Debounce::default(), ended: false, _thread: thread })
    }

    /// How this watch currently learns of changes.
    #[must_use]
    pub fn means(&self) -> Means {
        self.seen.borrow().means
    }

    /// Waits for a change, and then until nothing has changed for 300 ms, but at most a second.
    /// `None` means that the watch has ended. The call may be dropped and repeated at any time.
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
