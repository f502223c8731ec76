//! The screen of a session, painted from its output.

use std::sync::{Mutex, MutexGuard, PoisonError};

use session::terminal::{query::Query, screen::Size as Cells, size::Size};
use tokio::sync::{Notify, futures::Notified};

use super::{Output, journal::JournalScreen, painter::Painter};

/// Up to this many bytes are painted by the calling thread; more is left to a painting thread.
pub(crate) const LITTLE: usize = 16 * 1024;

/// Gives access to a session's output and the size of its terminal, which the session's lock covers.
pub(crate) trait OutputLock {
    /// Calls `act` under the session's lock.
    fn with_output<T>(&self, act: impl FnOnce(&mut Output, Size) -> T) -> T;
}

/// The screen of a session, with a lock of its own: painting takes long, and the session's lock is
/// held only briefly. A caller that needs both takes the screen's first.
pub(crate) struct PaintedScreen {
    painter: Mutex<Painter>,
    /// Notified when some output was painted.
    painted: Notify,
}

impl PaintedScreen {
    /// The blank screen of a terminal of this size.
    pub(crate) fn new(size: Size) -> Self {
        Self { painter: Mutex::new(Painter::new(size)), painted: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Painter> {
        self.painter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the painter for a change of the terminal's size. If there were many of them, all current output
    /// is painted before.
    pub(crate) fn lock_to_resize(&self, session: &impl OutputLock) -> MutexGuard<'_, Painter> {
        let mut painter = self.lock();
        if painter.has_many_sizes() {
            self.feed(&mut painter, session);
        }
        painter
    }

    /// Completes when some output has been painted after this call.
    pub(crate) fn painted(&self) -> Notified<'_> {
        self.painted.notified()
    }

    /// Paints all current output. Between two steps the screen's lock is released, so that others can take
    /// it.
    pub(crate) fn catch_up(&self, session: &impl OutputLock) {
        let now = session.with_output(|output, _| output.log().last_seq());
        while self.feed_some(&mut self.lock(), session) < now {}
    }

    /// Paints all current output. Returns the number of the last chunk, the screen's size, and the
    /// text that repaints it.
    pub(crate) fn snapshot(&self, session: &impl OutputLock) -> (u64, Cells, String) {
        let mut painter = self.lock();
        let seq = self.feed(&mut painter, session);
        let (size, data) = painter.snapshot();
        session.with_output(|output, _| output.drop_little_screen(&mut painter));
        (seq, size, data)
    }

    /// The screen's answer to a query at the end of all current output.
    pub(crate) fn answer(&self, session: &impl OutputLock, query: &Query) -> Option<String> {
        let mut painter = self.lock();
        self.feed(&mut painter, session);
        painter.answer(query)
    }

    /// Begins again with a blank screen, after the output so far.
    pub(crate) fn begin_anew(&self, session: &impl OutputLock) {
        let mut painter = self.lock();
        session.with_output(|output, size| {
            *painter = Painter::after(output.skip_unpainted(), size);
        });
        self.painted.notify_waiters();
    }

    /// Feeds a painter all current output. Returns the number of the last chunk that it was fed.
    fn feed(&self, painter: &mut Painter, session: &impl OutputLock) -> u64 {
        let now = session.with_output(|output, _| output.log().last_seq());
        loop {
            let fed = self.feed_some(painter, session);
            if fed >= now {
                return fed;
            }
        }
    }

    fn feed_some(&self, painter: &mut Painter, session: &impl OutputLock) -> u64 {
        let ((chunks, last), wants_screen) = session
            .with_output(|output, _| (output.take_unpainted(painter), output.wants_screen()));
        painter.feed(&chunks, last);
        self.painted.notify_waiters();
        if wants_screen {
            let (size, data) = painter.snapshot();
            let screen = JournalScreen { seq: last, cols: size.cols, rows: size.rows, data };
            session.with_output(|output, _| output.keep_screen(screen));
        }
        last
    }
}
