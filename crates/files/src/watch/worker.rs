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
    Limits, Means, WatchError, WatchReport, Work,
    poll::{Scan, scan},
    total::{WatchQuota, Watches},
    tree::{Tree, Trouble},
};

/// The most events that wait. If more come, some are lost, and the whole tree is watched afresh.
const WAITING: usize = 1024;
/// The longest time until a lost event is noticed when no other event follows.
const NOTICE: Duration = Duration::from_secs(1);
/// The shortest time before a whole tree is watched afresh.
const AGAIN: Duration = Duration::from_millis(500);

enum Signal {
    Event(Event),
    Stop,
}

/// State shared by the thread, the watcher and the owner.
#[derive(Debug, Default)]
struct SharedFlags {
    stop: AtomicBool,
    lost: AtomicBool,
}

/// The owner's end. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Handle {
    signals: SyncSender<Signal>,
    shared: Arc<SharedFlags>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // If the queue is full, its events wake the thread as well.
        let _ = self.signals.try_send(Signal::Stop);
    }
}

/// The sender that tells the owner that the watch has begun, or why it cannot.
pub(super) type Ready = oneshot::Sender<Result<(), WatchError>>;

/// The owner's end, and the work of the thread. `ready` is resolved when the directories are
/// watched, or the tree is polled, or the root cannot be read.
pub(super) fn new(
    root: PathBuf,
    limits: Limits,
    watches: Arc<Watches>,
    tell: watch::Sender<WatchReport>,
    ready: Ready,
) -> (Handle, Work) {
    let (signals, inbox) = sync_channel(WAITING);
    let shared = Arc::new(SharedFlags::default());
    let handle = Handle { signals: signals.clone(), shared: shared.clone() };
    let worker = Worker { root, limits, watches, tell, ready: Some(ready), signals, inbox, shared };
    (handle, Box::new(move || worker.run()))
}

struct Worker {
    root: PathBuf,
    limits: Limits,
    watches: Arc<Watches>,
    tell: watch::Sender<WatchReport>,
    ready: Option<Ready>,
    signals: SyncSender<Signal>,
    inbox: Receiver<Signal>,
    shared: Arc<SharedFlags>,
}

/// The owner has dropped the watch.
struct OwnerGone;

impl Worker {
    fn run(mut self) {
        match real(&self.root) {
            Ok(root) => self.root = root,
            Err(error) => {
                let refused = Err(WatchError::Root(error));
                return drop(self.ready.take().map(|ready| ready.send(refused)));
            }
        }
        let mut tree = self.tree();
        while let Ok(next) = self.round(tree) {
            tree = next;
        }
    }

    /// Watches until the watch has to begin again. If the tree cannot be watched, polls instead: until the root is
    /// back if it was missing, otherwise until it can be watched. Returns the tree of the next round.
    fn round(&mut self, tree: Result<Tree, Trouble>) -> Result<Result<Tree, Trouble>, OwnerGone> {
        let trouble = match tree {
            Ok(tree) => self.follow(tree)?,
            Err(trouble) => trouble,
        };
        if trouble == Trouble::Changed {
            self.report_change();
            self.pause(AGAIN)?;
            return Ok(self.tree());
        }
        self.poll(trouble)
    }

    /// Watches the directories of the tree.
    fn tree(&self) -> Result<Tree, Trouble> {
        self.shared.lost.store(false, Ordering::Release);
        let taken = WatchQuota::none(self.watches.clone());
        let shared = self.shared.clone();
        let stop = Box::new(move || shared.stop.load(Ordering::Acquire));
        Tree::watch(&self.root, self.limits.directories, taken, stop, self.handler())
    }

    /// The handler of the kernel's events. It runs on the watcher's own thread, so it never waits.
    fn handler(&self) -> impl Fn(notify::Result<Event>) + Send + 'static {
        let (signals, shared) = (self.signals.clone(), self.shared.clone());
        move |event| {
            let lost = match event {
                // A read of a file changes nothing.
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

    fn follow(&mut self, mut tree: Tree) -> Result<Trouble, OwnerGone> {
        self.report_ready(Means::Watching);
        loop {
            let matters = match self.take_in(&mut tree) {
                Ok(matters) => matters,
                Err(trouble) => return Ok(trouble),
            };
            self.stopped()?;
            if matters {
                self.report_change();
            }
            if self.shared.lost.load(Ordering::Acquire) {
                return Ok(Trouble::Changed);
            }
        }
    }

    /// Waits for a signal, and handles all queued signals. Returns whether there is a change to
    /// report.
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

    /// Scans the tree every few seconds. If the root is missing, this ends when the root is back, otherwise once the
    /// tree is watched.
    fn poll(&mut self, trouble: Trouble) -> Result<Result<Tree, Trouble>, OwnerGone> {
        tracing::debug!(root = %self.root.display(), ?trouble, "polled instead of watched");
        let mut before = scan(&self.root, self.limits.polled);
        self.report_ready(Means::Polling);
        let (mut wait, mut tried) = (self.limits.poll_every, Instant::now());
        loop {
            self.pause(wait)?;
            let began = Instant::now();
            let now = scan(&self.root, self.limits.polled);
            if trouble == Trouble::Gone && now.is_some() {
                return Ok(self.tree());
            }
            if now != before {
                self.report_change();
            }
            before = now;
            if tried.elapsed() >= self.limits.watch_again && self.fits(now) {
                // The kernel may still give too few watches.
                if let Ok(tree) = self.tree() {
                    return Ok(Ok(tree));
                }
                tried = Instant::now();
            }
            // Scans take about a tenth of the time. They take more if a scan is so slow that the wait would exceed
            // `poll_at_most`.
            wait = (began.elapsed() * 10).clamp(self.limits.poll_every, self.limits.poll_at_most);
        }
    }

    /// Whether a scanned tree is within the bounds of a watch.
    fn fits(&self, scan: Option<Scan>) -> bool {
        let most = self.limits.directories.min(self.watches.left());
        scan.and_then(|scan| scan.directories).is_some_and(|directories| directories <= most)
    }

    /// Waits, and drops the signals that arrive meanwhile.
    fn pause(&self, time: Duration) -> Result<(), OwnerGone> {
        let until = Instant::now() + time;
        loop {
            self.stopped()?;
            let left = until.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return self.stopped(),
                Err(RecvTimeoutError::Disconnected) => return Err(OwnerGone),
            }
        }
    }

    fn stopped(&self) -> Result<(), OwnerGone> {
        if self.shared.stop.load(Ordering::Acquire) { Err(OwnerGone) } else { Ok(()) }
    }

    fn report_change(&self) {
        self.tell.send_modify(|seen| seen.changes = seen.changes.wrapping_add(1));
    }

    fn report_ready(&mut self, means: Means) {
        self.tell.send_if_modified(|seen| {
            seen.means = means;
            false
        });
        // The owner still waits for the first start, so no change was missed. Before a later start nothing was
        // watched for a while, so a change may have been missed.
        let waited_for = self.ready.take().is_some_and(|ready| ready.send(Ok(())).is_ok());
        if !waited_for {
            self.report_change();
        }
    }
}

/// The real path of a directory, which must be readable.
fn real(root: &Path) -> io::Result<PathBuf> {
    let root = fs::canonicalize(root)?;
    fs::read_dir(&root).map(|_| root)
}
