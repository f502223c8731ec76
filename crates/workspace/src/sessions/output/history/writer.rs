//! The thread that writes the history of all sessions.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

/// How long output is gathered before it is written. If the daemon is killed, the output of this time is only in the
/// session's journal; without a journal it is lost.
const GATHER: Duration = Duration::from_millis(40);
/// If a session has more unwritten output than this, in bytes, it is written without further
/// gathering.
pub(crate) const AT_ONCE: usize = 256 * 1024;

/// A session with output for the disk.
pub(crate) trait WriteHistory: Send + Sync {
    /// Writes all output that is not yet on the disk. It blocks.
    fn write_history(&self);
}

/// The queue of the writing thread.
#[derive(Default)]
pub(crate) struct Writer {
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Each session is in the queue at most once, so the queue is no longer than the list of
    /// sessions.
    sessions: VecDeque<Arc<dyn WriteHistory>>,
    /// Callers that wait until all sessions in the queue are written.
    waiting: Vec<oneshot::Sender<()>>,
    is_urgent: bool,
    is_over: bool,
    /// Whether the thread has ended, so that nothing in the queue would be written any more.
    has_ended: bool,
}

impl Writer {
    /// Starts the thread. It ends with [`Writer::end`].
    pub(crate) fn start(self: &Arc<Self>) {
        let writer = Arc::clone(self);
        // One thread for all sessions: several would only compete for the disk.
        thread::spawn(move || while writer.round() {});
    }

    /// Queues a session, so that its new output is written soon. After the end of the thread it does nothing.
    pub(crate) fn add(&self, session: Arc<dyn WriteHistory>) {
        let mut queue = self.lock();
        if queue.has_ended {
            return;
        }
        queue.sessions.push_back(session);
        // If the queue was not empty, the thread is awake and gathering already.
        if queue.sessions.len() == 1 {
            self.news.notify_one();
        }
    }

    /// Makes the thread write everything in the queue without further gathering.
    pub(crate) fn hurry(&self) {
        self.lock().is_urgent = true;
        self.news.notify_one();
    }

    /// Returns when the output of all sessions that were added before is written, or could not be written.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if !self.join(done) {
            return;
        }
        // After the caller has joined, so that the round that begins now takes it, too.
        self.hurry();
        let _over = wait.await;
    }

    /// Lets a caller wait. Returns false if the thread has ended.
    fn join(&self, done: oneshot::Sender<()>) -> bool {
        let mut queue = self.lock();
        if !queue.has_ended {
            queue.waiting.push(done);
        }
        !queue.has_ended
    }

    /// Ends the thread once it has written everything in the queue.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.news.notify_one();
    }

    /// Writes one batch. Returns whether another may follow.
    fn round(&self) -> bool {
        let Queue { sessions, waiting, is_over, .. } = self.gathered();
        for session in sessions {
            session.write_history();
        }
        for done in waiting {
            let _nobody = done.send(());
        }
        !(is_over && self.ends())
    }

    /// Notes that the thread ends, unless something has come into the queue since the last round.
    fn ends(&self) -> bool {
        let mut queue = self.lock();
        queue.has_ended = queue.sessions.is_empty() && queue.waiting.is_empty();
        queue.has_ended
    }

    /// Waits for something to write, then gathers more for a while.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    #[derive(Default)]
    struct Writes(AtomicUsize);

    impl WriteHistory for Writes {
        fn write_history(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_ended() {
        let (writer, session) = (Writer::default(), Arc::new(Writes::default()));
        writer.add(session.clone());
        let mut before = Box::pin(writer.flush());
        assert!((&mut before).now_or_never().is_none());
        writer.end();
        while writer.round() {}
        assert!(before.now_or_never().is_some());
        assert_eq!(session.0.load(Ordering::Relaxed), 1);
        assert!(writer.flush().now_or_never().is_some());
        writer.add(session.clone());
        assert_eq!(Arc::strong_count(&session), 1, "the queue holds nothing that is never written");
    }
}
