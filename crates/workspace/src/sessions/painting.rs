//! When screens are painted, and by which thread. Painting has threads of its own, so that a
//! flooding terminal delays nobody but itself.
//!
//! The reader of a terminal waits in [`Session::room`] until the log surely keeps all unpainted
//! output. So a program writes no faster than its screen can be painted.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use protocol::workspace::client::SessionSnapshot;
use tokio::task;

use super::{
    output::{Output, cost},
    painter::Painter,
    session::Session,
};
use crate::refusal::Refusal;

/// More unpainted output than this, in bytes, is painted soon. Less is painted only when the output
/// pauses or a client needs the screen.
const MUCH: usize = 256 * 1024;
/// The most output that may wait to be painted, in bytes.
const MOST: usize = 1024 * 1024;
/// Up to this many bytes are painted by the calling thread; more is left to a painting thread.
const LITTLE: usize = 16 * 1024;
/// The most output that is painted in one step, in bytes.
const STEP: u64 = 128 * 1024;

/// The queue of the painting threads.
#[derive(Default)]
pub(super) struct Painting {
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Each session is in the queue at most once.
    sessions: VecDeque<Arc<Session>>,
    is_over: bool,
}

impl Painting {
    /// Starts the threads: one for every two cores of the machine, like the rest of the server.
    /// They end with [`Painting::end`].
    pub(super) fn start(self: &Arc<Self>) {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 0..(cores / 2).max(1) {
            let painting = Arc::clone(self);
            thread::spawn(move || {
                while let Some(session) = painting.next() {
                    session.paint_or_begin_anew();
                }
            });
        }
    }

    /// Ends the threads once the queue is empty.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.news.notify_all();
    }

    fn add(&self, session: Arc<Session>) {
        self.lock().sessions.push_back(session);
        self.news.notify_one();
    }

    /// Waits for the next session to paint; `None` at the end.
    fn next(&self) -> Option<Arc<Session>> {
        let is_idle = |queue: &mut Queue| queue.sessions.is_empty() && !queue.is_over;
        let queue = self.news.wait_while(self.lock(), is_idle);
        queue.unwrap_or_else(PoisonError::into_inner).sessions.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    pub(super) fn is_much_unpainted(&self) -> bool {
        self.unpainted > MUCH && !self.is_to_be_painted
    }

    /// Whether this many more bytes might push unpainted output out of the log.
    fn is_too_much(&self, more: usize, bound: usize) -> bool {
        // Decoding can make bytes that are not valid text three times as long.
        self.unpainted > 0 && self.unpainted + 3 * more > MOST.min(bound / 2)
    }
}

impl Session {
    /// Waits until this many more bytes of output can be taken.
    pub(super) async fn room(self: &Arc<Self>, bytes: usize) {
        loop {
            let mut painted = std::pin::pin!(self.painted.notified());
            painted.as_mut().enable();
            if !self.lock().output.is_too_much(bytes, self.commons.log_bytes) {
                return;
            }
            self.paint_soon();
            painted.await;
        }
    }

    /// Paints at once if this many bytes would not fit: their source did not wait for room.
    pub(super) fn make_room(&self, bytes: usize) {
        if self.is_terminal && self.lock().output.is_too_much(bytes, self.commons.log_bytes) {
            self.catch_up();
        }
    }

    /// Lets a painting thread paint the screen.
    pub(super) fn paint_soon(self: &Arc<Self>) {
        let queued = std::mem::replace(&mut self.lock().output.is_to_be_painted, true);
        if !queued {
            self.commons.painting.add(Arc::clone(self));
        }
    }

    /// Paints the screen, if the output has paused for long enough.
    pub(super) fn paint_if_paused(self: &Arc<Self>, now: Instant) {
        let unpainted = {
            let output = &self.lock().output;
            output.paint_at().filter(|at| *at <= now).map(|_| output.unpainted)
        };
        match unpainted {
            Some(unpainted) if unpainted <= LITTLE => self.catch_up(),
            Some(_) => self.paint_soon(),
            None => {}
        }
    }

    /// The current screen, painted on another thread if that takes long.
    pub(super) async fn screen_soon(self: &Arc<Self>) -> Result<SessionSnapshot, Refusal> {
        if self.lock().output.unpainted <= LITTLE {
            return Ok(self.screen_now());
        }
        let session = Arc::clone(self);
        let painted = task::spawn_blocking(move || session.screen_now()).await;
        painted.map_err(|error| Refusal::failed(&error))
    }

    /// Feeds a painter all current output. Returns the number up to which the painter has it.
    pub(super) fn feed(&self, painter: &mut Painter) -> u64 {
        let now = self.lock().output.log.last_seq();
        loop {
            let fed = self.feed_some(painter);
            if fed >= now {
                return fed;
            }
        }
    }

    /// Paints all current output. Between two steps the screen's lock is released, so that others
    /// can take it.
    fn catch_up(&self) {
        let now = self.lock().output.log.last_seq();
        while self.feed_some(&mut self.painter()) < now {}
    }

    fn feed_some(&self, painter: &mut Painter) -> u64 {
        let (chunks, last) = {
            let mut state = self.lock();
            let output = &mut state.output;
            let chunks: Vec<_> = painter.lacking(&output.log).up_to(STEP).collect();
            let newest = output.log.last_seq();
            let last = chunks.last().map_or(newest, |chunk| chunk.seq);
            let fed: usize = chunks.iter().map(|chunk| cost(chunk.text.len())).sum();
            output.has_screen = true;
            output.unpainted =
                if last == newest { 0 } else { output.unpainted.saturating_sub(fed) };
            (chunks, last)
        };
        painter.feed(chunks, last);
        self.painted.notify_waiters();
        last
    }

    /// Paints on a painting thread. The thread must survive a panic, so after a panic the screen
    /// begins again, blank.
    fn paint_or_begin_anew(&self) {
        self.lock().output.is_to_be_painted = false;
        if catch_unwind(AssertUnwindSafe(|| self.catch_up())).is_err() {
            tracing::error!(session = %self.id, "a screen could not be painted, and begins anew");
            let mut painter = self.painter();
            let mut state = self.lock();
            *painter = Painter::after(state.output.log.last_seq(), state.windows.size());
            state.output.unpainted = 0;
            drop(state);
            self.painted.notify_waiters();
        }
    }

    pub(super) fn painter(&self) -> MutexGuard<'_, Painter> {
        self.painter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
