//! The thread that writes the history of all sessions.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::sessions::session::Session;

/// Output is gathered for this long before it is written: it is what is lost at most when the daemon is
/// killed.
const GATHER: Duration = Duration::from_millis(40);
/// So much of one session's is written at once, in bytes, however long it has gathered.
pub(crate) const AT_ONCE: usize = 256 * 1024;

/// The way to the thread.
#[derive(Default)]
pub(crate) struct Writer {
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Each session is in it once, at most.
    sessions: VecDeque<Arc<Session>>,
    /// Told when all before them is written.
    waiting: Vec<oneshot::Sender<()>>,
    is_urgent: bool,
    is_over: bool,
}

impl Writer {
    /// Starts the thread. It ends with [`Writer::end`].
    pub(crate) fn start(self: &Arc<Self>) {
        let writer = Arc::clone(self);
        thread::spawn(move || while writer.round() {});
    }

    /// Has a session's new output written soon.
    pub(crate) fn add(&self, session: Arc<Session>) {
        let mut queue = self.lock();
        queue.sessions.push_back(session);
        // The thread gathers anyway once there is something.
        if queue.sessions.len() == 1 {
            self.news.notify_one();
        }
    }

    /// Has all of it written at once.
    pub(crate) fn hurry(&self) {
        self.lock().is_urgent = true;
        self.news.notify_one();
    }

    /// Returns when all that was added before is written, or could not be.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        self.lock().waiting.push(done);
        self.hurry();
        let _over = wait.await;
    }

    /// Ends the thread once it has written all.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.news.notify_one();
    }

    /// Whether there may be another.
    fn round(&self) -> bool {
        let Queue { sessions, waiting, is_over, .. } = self.gathered();
        for session in sessions {
            session.write_history();
        }
        for done in waiting {
            let _nobody = done.send(());
        }
        !is_over
    }

    /// Waits until there is something, and then for more of it.
    fn gathered(&self) -> Queue {
        let is_idle = |queue: &mut Queue| {
            queue.sessions.is_empty() && queue.waiting.is_empty() && !queue.is_over
        };
        let queue =
            self.news.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + GATHER;
        let gathers =
            |queue: &mut Queue| !queue.is_urgent && !queue.is_over && Instant::now() < end;
        let waited = self.news.wait_timeout_while(queue, GATHER, gathers);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_over = queue.is_over;
        let taken = std::mem::take(&mut *queue);
        queue.is_over = is_over;
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
