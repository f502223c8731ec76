//! The thread of a watch, which watches or polls.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use notify::{Event, EventKind};
use tokio::sync::{oneshot, watch};

use super::{
    Limits, Means, Seen, WatchError, Work,
    poll::fingerprint,
    total::{Taken, Watches},
    tree::{Tree, Trouble},
};

/// How many events may wait. When more come, the tree is looked through again.
const WAITING: usize = 1024;
/// How long it may take until a lost event is noticed that nothing followed.
const NOTICE: Duration = Duration::from_secs(1);
/// How long a tree is left alone at least before all of it is watched anew.
const AGAIN: Duration = Duration::from_millis(500);

/// What the thread is told.
enum Signal {
    Event(Event),
    Stop,
}

/// What thread, watcher and owner share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Events were lost.
    lost: AtomicBool,
}

/// The owner's end. Dropped, it ends the thread.
#[derive(Debug)]
pub(super) struct Handle {
    signals: SyncSender<Signal>,
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // A full queue wakes the thread as well.
        let _ = self.signals.try_send(Signal::Stop);
    }
}

/// Who waits for the directories to be watched, or for why they are not.
pub(super) type Ready = oneshot::Sender<Result<(), WatchError>>;

/// What the thread is to do, and the owner's end of it. `ready` is told when the directories are
/// watched.
pub(super) fn new(
    root: PathBuf,
    limits: Limits,
    watches: Arc<Watches>,
    tell: watch::Sender<Seen>,
    ready: Ready,
) -> (Handle, Work) {
    let (signals, inbox) = sync_channel(WAITING);
    let shared = Arc::new(Shared::default());
    let handle = Handle { signals: signals.clone(), shared: shared.clone() };
    let worker = Worker { root, limits, watches, tell, ready: Some(ready), signals, inbox, shared };
    (handle, Box::new(move || worker.run()))
}

struct Worker {
    root: PathBuf,
    limits: Limits,
    watches: Arc<Watches>,
    tell: watch::Sender<Seen>,
    ready: Option<Ready>,
    signals: SyncSender<Signal>,
    inbox: Receiver<Signal>,
    shared: Arc<Shared>,
}

/// That the owner has left.
struct Stopped;

impl Worker {
    fn run(mut self) {
        match real(&self.root) {
            Ok(root) => self.root = root,
            Err(error) => {
                let refused = Err(WatchError::Root(error));
                return drop(self.ready.take().map(|ready| ready.send(refused)));
            }
        }
        while self.round().is_ok() {}
    }

    /// Watches until it has to begin again, or polls until it may.
    fn round(&mut self) -> Result<(), Stopped> {
        self.shared.lost.store(false, Ordering::Release);
        let taken = Taken::none(self.watches.clone());
        let shared = self.shared.clone();
        let stop = Box::new(move || shared.stop.load(Ordering::Acquire));
        let tree = Tree::watch(&self.root, self.limits.directories, taken, stop, self.handler());
        let trouble = match tree {
            Ok(tree) => self.follow(tree)?,
            Err(trouble) => trouble,
        };
        if trouble == Trouble::Changed {
            self.told();
            return self.pause(AGAIN);
        }
        self.poll(trouble)
    }

    /// Runs on the watcher's own thread, and never waits.
    fn handler(&self) -> impl Fn(notify::Result<Event>) + Send + 'static {
        let (signals, shared) = (self.signals.clone(), self.shared.clone());
        move |event| {
            let lost = match event {
                // Somebody only looked.
                Ok(Event { kind: EventKind::Access(_), .. }) => false,
                Ok(event) if event.need_rescan() => true,
                Ok(event) => signals.try_send(Signal::Event(event)).is_err(),
                Err(_) => true,
            };
            if lost {
                shared.lost.store(true, Ordering::Release);
            }
        }
    }

    fn follow(&mut self, mut tree: Tree) -> Result<Trouble, Stopped> {
        self.is_ready(Means::Watching);
        loop {
            let matters = match self.take_in(&mut tree) {
                Ok(matters) => matters,
                Err(trouble) => return Ok(trouble),
            };
            self.stopped()?;
            if matters {
                self.told();
            }
            if self.shared.lost.load(Ordering::Acquire) {
                return Ok(Trouble::Changed);
            }
        }
    }

    /// Waits for a signal, and takes in all that wait with it.
    fn take_in(&self, tree: &mut Tree) -> Result<bool, Trouble> {
        let mut matters = false;
        let mut next = self.inbox.recv_timeout(NOTICE).ok();
        for _ in 0..WAITING {
            match next {
                Some(Signal::Event(event)) => matters |= tree.take_in(&event)?,
                Some(Signal::Stop) | None => break,
            }
            next = self.inbox.try_recv().ok();
        }
        Ok(matters)
    }

    /// Looks through the tree every few seconds; when the root was gone, until it is back.
    fn poll(&mut self, trouble: Trouble) -> Result<(), Stopped> {
        tracing::debug!(root = %self.root.display(), ?trouble, "polled instead of watched");
        let mut before = fingerprint(&self.root, self.limits.polled);
        self.is_ready(Means::Polling);
        let mut wait = self.limits.poll_every;
        loop {
            self.pause(wait)?;
            let began = Instant::now();
            let now = fingerprint(&self.root, self.limits.polled);
            if trouble == Trouble::Gone && now.is_some() {
                return Ok(());
            }
            if now != before {
                self.told();
            }
            before = now;
            // A tenth of the time at most goes into looking.
            wait = (began.elapsed() * 10).clamp(self.limits.poll_every, self.limits.poll_at_most);
        }
    }

    /// Waits, and forgets what is told meanwhile.
    fn pause(&self, time: Duration) -> Result<(), Stopped> {
        let until = Instant::now() + time;
        loop {
            self.stopped()?;
            let left = until.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return self.stopped(),
                Err(RecvTimeoutError::Disconnected) => return Err(Stopped),
            }
        }
    }

    fn stopped(&self) -> Result<(), Stopped> {
        if self.shared.stop.load(Ordering::Acquire) { Err(Stopped) } else { Ok(()) }
    }

    fn told(&self) {
        self.tell.send_modify(|seen| seen.changes = seen.changes.wrapping_add(1));
    }

    fn is_ready(&mut self, means: Means) {
        self.tell.send_if_modified(|seen| {
            seen.means = means;
            false
        });
        // Who waits for it has missed nothing. Others may have, while nobody watched.
        let waited_for = self.ready.take().is_some_and(|ready| ready.send(Ok(())).is_ok());
        if !waited_for {
            self.told();
        }
    }
}

/// Where a directory that can be read really is.
fn real(root: &Path) -> io::Result<PathBuf> {
    let root = fs::canonicalize(root)?;
    fs::read_dir(&root).map(|_| root)
}
