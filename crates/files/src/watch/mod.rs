//! A tick when something under a root has changed, without saying what.
//!
//! Directories are watched one by one, those that git ignores not at all. Where there are too many
//! (for one watch, for all, or for the kernel), or the root is gone for a while, the tree is looked
//! through every few seconds instead. A watch ends when it is dropped.
//!
//! - `debounce`: when a tick is due; pure
//! - `worker`: the thread of a watch, which watches or polls
//! - `tree`: directories that are watched
//! - `rules`: what git ignores, and where its own files are
//! - `poll`: a tree looked through
//! - `total`: how many directories all watches have together

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

/// How long [`Watch::start`] waits for the directories to be watched, of a large tree, before it
/// goes on without; the first tick comes when they are.
const START: Duration = Duration::from_secs(5);

/// How much one watch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many directories it may watch, before it polls instead.
    pub directories: usize,
    /// How many entries are looked at in one polling.
    pub polled: usize,
    /// How long it waits between two pollings, at least.
    pub poll_every: Duration,
    /// How long at most, where one takes long.
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

/// How a watch finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The kernel tells it.
    Watching,
    /// It looks every few seconds.
    Polling,
}

/// Why there is no watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The root is not there, or is no directory.
    #[error("the project's directory cannot be watched: {0}")]
    Root(#[source] io::Error),
    /// No thread could be started.
    #[error("no thread can be started to watch with: {0}")]
    Thread(#[source] io::Error),
    /// The thread ended before it watched.
    #[error("the project's directory is not watched: the server's log says why")]
    Ended,
}

/// All that a watch does, for a thread of its own. It may take as long as the watch.
pub type Work = Box<dyn FnOnce() + Send>;

/// What the thread tells: how often something changed, and how it finds out.
#[derive(Debug, Clone, Copy)]
struct Seen {
    changes: u64,
    means: Means,
}

/// One subscription to one root. Dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    seen: watch::Receiver<Seen>,
    debounce: Debounce,
    ended: bool,
    _thread: Handle,
}

impl Watch {
    /// Watches a directory. When this returns, changes are seen from now on (in a very large tree,
    /// from a moment later on, which a tick then says).
    ///
    /// # Errors
    ///
    /// [`WatchError`]. That there are too many directories is none: they are polled.
    pub async fn start(
        root: &Path,
        limits: Limits,
        watches: &Arc<Watches>,
    ) -> Result<Self, WatchError> {
        let begin =
            |work: Work| thread::Builder::new().name("watch".to_owned()).spawn(work).map(drop);
        Self::start_on(root, limits, watches, begin).await
    }

    /// The same on a thread that `begin` makes, which need not have this process's rights: what it
    /// may not read is neither watched nor told.
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
        let (tell, seen) = watch::channel(Seen { changes: 0, means: Means::Polling });
        let (ready, is_ready) = oneshot::channel();
        let (thread, work) = worker::new(root.to_owned(), limits, watches.clone(), tell, ready);
        begin(work).map_err(WatchError::Thread)?;
        // When it is late, the thread goes on, and its ending is told by `changed`.
        if let Ok(told) = timeout(START, is_ready).await {
            told.map_err(|_| WatchError::Ended)??;
        }
        Ok(Self { seen, debounce: Debounce::default(), ended: false, _thread: thread })
    }

    /// How this watch finds out at present.
    #[must_use]
    pub fn means(&self) -> Means {
        self.seen.borrow().means
    }

    /// Waits until something has changed, and then for 300 ms of quiet; under constant change for
    /// a second at most. None: the watch has ended. May be dropped and called again at any time.
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
