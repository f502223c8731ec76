//! The size of a session's terminal when several clients with windows of their own watch it.
//!
//! The terminal has the size of the visible client that was used last: the client that typed last,
//! or, if none of the visible clients has typed, the client that reported its size last. Taking
//! control counts as use without typing; the next client that types takes the size over again. A
//! hidden client never counts; when no client is visible, the size stays. A change is delayed for a
//! moment, since every change makes the program in the terminal redraw.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::{Duration, Instant},
};

use crate::terminal::viewer::ViewerId;

/// How long a size must be wanted before the terminal gets it.
pub const DEBOUNCE: Duration = Duration::from_millis(50);
/// The longest delay of a change, however often the wanted size changes meanwhile.
pub const MOST_DELAY: Duration = Duration::from_millis(500);
/// The most clients whose sizes are kept; further clients are refused.
pub const MAX_VIEWERS: usize = 1024;

/// The size of a terminal in cells, within bounds that programs and screens can handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    cols: u16,
    rows: u16,
}

/// A refused size; the size before it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The size is too small: a program would draw nonsense and damage what it drew before.
    #[error(
        "a terminal of {cols}×{rows} is too small: the smallest is {}×{}; tell that you are not \
         visible instead",
        Size::SMALLEST.cols,
        Size::SMALLEST.rows
    )]
    TooSmall {
        /// The requested columns.
        cols: u16,
        /// The requested rows.
        rows: u16,
    },
    /// The size is too large: the screen would take too much memory.
    #[error(
        "a terminal of {cols}×{rows} is too large: the largest is {}×{}",
        Size::LARGEST.cols,
        Size::LARGEST.rows
    )]
    TooLarge {
        /// The requested columns.
        cols: u16,
        /// The requested rows.
        rows: u16,
    },
    /// Too many clients have reported their sizes.
    #[error("{MAX_VIEWERS} clients watch this session already: its size cannot follow another")]
    TooMany,
}

impl Size {
    /// The size that most terminals begin with.
    pub const DEFAULT: Self = Self { cols: 80, rows: 24 };
    /// The smallest size.
    pub const SMALLEST: Self = Self { cols: 20, rows: 5 };
    /// The largest size.
    pub const LARGEST: Self = Self { cols: 1000, rows: 500 };

    /// A size of `cols` columns and `rows` rows.
    ///
    /// # Errors
    /// When the size is too small or too large.
    pub const fn new(cols: u16, rows: u16) -> Result<Self, Refused> {
        if cols < Self::SMALLEST.cols || rows < Self::SMALLEST.rows {
            return Err(Refused::TooSmall { cols, rows });
        }
        if cols > Self::LARGEST.cols || rows > Self::LARGEST.rows {
            return Err(Refused::TooLarge { cols, rows });
        }
        Ok(Self { cols, rows })
    }

    /// The number of columns.
    pub const fn cols(self) -> u16 {
        self.cols
    }

    /// The number of rows.
    pub const fn rows(self) -> u16 {
        self.rows
    }
}

/// The sizes of a session's clients, and the size of its terminal.
#[derive(Debug)]
pub struct Sizes {
    current: Size,
    viewers: BTreeMap<ViewerId, Window>,
    /// Counts the clients' actions: a later action has a larger number.
    steps: u64,
    pending: Option<PendingSize>,
    output: Option<Size>,
}

/// The known facts of a client's window.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    size: Option<Size>,
    visible: bool,
    /// The step of its last use; 0 if it was never used.
    used: u64,
    /// The step of its last reported size.
    reported: u64,
}

/// A size that the terminal gets soon.
#[derive(Debug, Clone, Copy)]
struct PendingSize {
    size: Size,
    at: Instant,
    /// The time beyond which the change is not delayed.
    latest: Instant,
}

impl Sizes {
    /// The sizes of a session whose terminal has this size, and that no client watches.
    pub const fn new(current: Size) -> Self {
        Self { current, viewers: BTreeMap::new(), steps: 0, pending: None, output: None }
    }

    /// The size of the terminal now.
    pub const fn current(&self) -> Size {
        self.current
    }

    /// Notes the size of a client's window, and whether the window is visible. A hidden window may
    /// have any size; a size that is not valid for a terminal is then ignored.
    ///
    /// # Errors
    /// When the size of a visible window is refused, or there are too many clients. In that case
    /// nothing changes.
    pub fn resize(
        &mut self,
        viewer: ViewerId,
        (cols, rows): (u16, u16),
        visible: bool,
        now: Instant,
    ) -> Result<(), Refused> {
        let size = Size::new(cols, rows);
        if visible {
            size?;
        }
        // Counted even if the client is refused: the numbers only have to grow.
        let reported = self.step();
        let window = self.window(viewer)?;
        window.size = size.ok().or(window.size);
        (window.visible, window.reported) = (visible, reported);
        self.settle(now);
        Ok(())
    }

    /// Notes that a client typed into the session.
    pub fn typed(&mut self, viewer: ViewerId, now: Instant) {
        let used = self.step();
        if let Ok(window) = self.window(viewer) {
            window.used = used;
            self.settle(now);
        }
    }

    /// Gives the terminal the size of this client's window, although the client has not typed.
    pub fn take_control(&mut self, viewer: ViewerId, now: Instant) {
        self.typed(viewer, now);
    }

    /// Notes that a client does not watch the session any more.
    pub fn leave(&mut self, viewer: ViewerId, now: Instant) {
        if self.viewers.remove(&viewer).is_some() {
            self.settle(now);
        }
    }

    /// The size that the terminal must get now, if it has changed; announce it to all clients.
    pub const fn poll_output(&mut self) -> Option<Size> {
        self.output.take()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pending.map(|pending| pending.at)
    }

    /// Handles the passing of time: makes the change that is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(pending) = self.pending.take_if(|pending| pending.at <= now) {
            self.current = pending.size;
            self.output = Some(pending.size);
        }
    }

    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    fn window(&mut self, viewer: ViewerId) -> Result<&mut Window, Refused> {
        let full = self.viewers.len() >= MAX_VIEWERS;
        match self.viewers.entry(viewer) {
            Entry::Vacant(_) if full => Err(Refused::TooMany),
            entry => Ok(entry.or_default()),
        }
    }

    /// Begins, delays or cancels a change.
    fn settle(&mut self, now: Instant) {
        let size = self.winner().unwrap_or(self.current);
        self.pending = match self.pending {
            // Back to the present size before the change was made: the program need not redraw.
            _ if size == self.current => None,
            // The delay runs from the first wish, not from each repetition.
            Some(pending) if pending.size == size => Some(pending),
            Some(PendingSize { latest, .. }) => {
                Some(PendingSize { size, at: latest.min(now + DEBOUNCE), latest })
            }
            None => Some(PendingSize { size, at: now + DEBOUNCE, latest: now + MOST_DELAY }),
        };
    }

    /// The client in control among those for which `is_one` returns true: the visible one that was used last. If none
    /// was used, the visible one that reported its size last.
    pub fn in_control(&self, is_one: impl Fn(ViewerId) -> bool) -> Option<ViewerId> {
        let ones =
            self.viewers.iter().filter(|(viewer, window)| window.visible && is_one(**viewer));
        ones.max_by_key(|(_, window)| (window.used, window.reported)).map(|(viewer, _)| *viewer)
    }

    /// The size of the window of the client in control.
    fn winner(&self) -> Option<Size> {
        let viewer = self.in_control(|_| true)?;
        self.viewers.get(&viewer).and_then(|window| window.size)
    }
}

#[cfg(test)]
mod tests;
