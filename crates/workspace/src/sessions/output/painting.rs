//! The painting threads. Painting has threads of its own, so that a flooding terminal delays nobody
//! but itself.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// A screen that can fall behind its output.
pub(crate) trait Paint: Send + Sync {
    /// Paints all current output. It must not panic: a panic would end the painting thread that calls it.
    fn paint(&self);
}

/// The queue of the painting threads.
#[derive(Default)]
pub(crate) struct PaintQueue {
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Each session is in the queue at most once, so the queue is no longer than the list of
    /// sessions.
    sessions: VecDeque<Arc<dyn Paint>>,
    is_over: bool,
}

impl PaintQueue {
    /// Starts the threads: one for every two cores of the machine, like the rest of the server.
    /// They end with [`PaintQueue::end`].
    pub(crate) fn start(self: &Arc<Self>) {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 0..(cores / 2).max(1) {
            let queue = Arc::clone(self);
            thread::spawn(move || {
                while let Some(session) = queue.next() {
                    session.paint();
                }
            });
        }
    }

    /// Ends the threads once the queue is empty.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.news.notify_all();
    }

    pub(crate) fn add(&self, session: Arc<dyn Paint>) {
        self.lock().sessions.push_back(session);
        self.news.notify_one();
    }

    /// Waits for the next session to paint; `None` at the end.
    fn next(&self) -> Option<Arc<dyn Paint>> {
        let is_idle = |queue: &mut Queue| queue.sessions.is_empty() && !queue.is_over;
        let queue = self.news.wait_while(self.lock(), is_idle);
        queue.unwrap_or_else(PoisonError::into_inner).sessions.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
