//! How large a session's terminal is, when several clients with windows of their own watch it.
//!
//! The size is that of the client that was used last among those visible: the one that typed last,
//! or, where none of them has typed, the one that told its size last. Taking control is being used
//! without typing: the next one who types takes it back. A hidden client never counts; when nobody is
//! visible, the size stays. Nothing changes before it has been wanted for a moment, since every
//! change makes the program in the terminal redraw.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::{Duration, Instant},
};

use crate::terminal::viewer::ViewerId;

/// How long a size must have been wanted before it is taken.
pub const DEBOUNCE: Duration = Duration::from_millis(50);
/// However often it changes what is wanted, it is not put off for longer.
pub const MOST_DELAY: Duration = Duration::from_millis(500);
/// Of so many clients sizes are remembered; more are refused.
pub const MAX_VIEWERS: usize = 1024;

/// The size of a terminal in cells, within what programs and screens can bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    cols: u16,
    rows: u16,
}

/// A size that is refused; the one before stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A program would draw nonsense, and harm what was drawn before.
    #[error(
        "a terminal of {cols}×{rows} is too small: the smallest is {}×{}; tell that you are not \
         visible instead",
        Size::SMALLEST.cols,
        Size::SMALLEST.rows
    )]
    TooSmall {
        /// The columns asked for.
        cols: u16,
        /// The rows asked for.
        rows: u16,
    },
    /// It would take too much memory.
    #[error(
        "a terminal of {cols}×{rows} is too large: the largest is {}×{}",
        Size::LARGEST.cols,
        Size::LARGEST.rows
    )]
    TooLarge {
        /// The columns asked for.
        cols: u16,
        /// The rows asked for.
        rows: u16,
    },
    /// Too many clients have told their sizes.
    #[error("{MAX_VIEWERS} clients watch this session already: its size cannot follow another")]
    TooMany,
}

impl Size {
    /// What most terminals begin with.
    pub const DEFAULT: Self = Self { cols: 80, rows: 24 };
    /// The smallest.
    pub const SMALLEST: Self = Self { cols: 20, rows: 5 };
    /// The largest.
    pub const LARGEST: Self = Self { cols: 1000, rows: 500 };

    /// A size of so many columns and rows.
    ///
    /// # Errors
    /// When it is too small or too large.
    pub const fn new(cols: u16, rows: u16) -> Result<Self, Refused> {
        if cols < Self::SMALLEST.cols || rows < Self::SMALLEST.rows {
            return Err(Refused::TooSmall { cols, rows });
        }
        if cols > Self::LARGEST.cols || rows > Self::LARGEST.rows {
            return Err(Refused::TooLarge { cols, rows });
        }
        Ok(Self { cols, rows })
    }

    /// How many columns.
    pub const fn cols(self) -> u16 {
        self.cols
    }

    /// How many rows.
    pub const fn rows(self) -> u16 {
        self.rows
    }
}

/// The sizes of a session's clients, and which of them its terminal has.
#[derive(Debug)]
pub struct Sizes {
    current: Size,
    viewers: BTreeMap<ViewerId, Window>,
    /// Counts what clients do: what was done later has the larger number.
    steps: u64,
    wanted: Option<Wanted>,
    output: Option<Size>,
}

/// What is known of a client's window.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    size: Option<Size>,
    visible: bool,
    /// When it was used last; 0 for never.
    used: u64,
    /// When it told its size last.
    told: u64,
}

/// A size that the terminal is to have soon.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    size: Size,
    at: Instant,
    /// It is not put off beyond.
    latest: Instant,
}

impl Sizes {
    /// Of a session whose terminal has this size, and that nobody watches.
    pub const fn new(current: Size) -> Self {
        Self { current, viewers: BTreeMap::new(), steps: 0, wanted: None, output: None }
    }

    /// The size that the terminal has.
    pub const fn current(&self) -> Size {
        self.current
    }

    /// A client tells the size of its window, and whether it is to be seen. A hidden window may have
    /// any size: one that is no size for a terminal is not remembered.
    ///
    /// # Errors
    /// When the size of a visible window is refused, or there are too many clients: nothing changes.
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
        let told = self.step();
        let window = self.window(viewer)?;
        window.size = size.ok().or(window.size);
        (window.visible, window.told) = (visible, told);
        self.settle(now);
        Ok(())
    }

    /// A client typed into the session.
    pub fn typed(&mut self, viewer: ViewerId, now: Instant) {
        let used = self.step();
        if let Ok(window) = self.window(viewer) {
            window.used = used;
            self.settle(now);
        }
    }

    /// A client wants the size of its window without typing.
    pub fn take_control(&mut self, viewer: ViewerId, now: Instant) {
        self.typed(viewer, now);
    }

    /// A client does not watch any more.
    pub fn leave(&mut self, viewer: ViewerId, now: Instant) {
        if self.viewers.remove(&viewer).is_some() {
            self.settle(now);
        }
    }

    /// The size that the terminal is to get now, if it is another than it had: to be told to all.
    pub const fn poll_output(&mut self) -> Option<Size> {
        self.output.take()
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.wanted.map(|wanted| wanted.at)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(wanted) = self.wanted.take_if(|wanted| wanted.at <= now) {
            self.current = wanted.size;
            self.output = Some(wanted.size);
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

    /// Begins, puts off or gives up a change.
    fn settle(&mut self, now: Instant) {
        let size = self.winner().unwrap_or(self.current);
        self.wanted = match self.wanted {
            _ if size == self.current => None,
            Some(wanted) if wanted.size == size => Some(wanted),
            Some(Wanted { latest, .. }) => {
                Some(Wanted { size, at: latest.min(now + DEBOUNCE), latest })
            }
            None => Some(Wanted { size, at: now + DEBOUNCE, latest: now + MOST_DELAY }),
        };
    }

    /// The size of the client that counts.
    fn winner(&self) -> Option<Size> {
        let visible = self.viewers.values().filter(|window| window.visible);
        visible.max_by_key(|window| (window.used, window.told)).and_then(|window| window.size)
    }
}

#[cfg(test)]
mod tests;
