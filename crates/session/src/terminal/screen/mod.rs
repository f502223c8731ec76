//! What a terminal shows now, and the text that repaints it elsewhere.
//!
//! History is the log's business: here is only the screen, both of its pages, and the modes that
//! programs set. It never answers: a viewer's own terminal does.
//!
//! - [`Size`], [`Screen`]: what others see
//! - `feed`: bytes in, cut into what the engine can read whole
//! - `scan`: where a control sequence ends, with a bound; `skim`: text that nobody will see
//! - `emulator`: the engine, and beside it what the engine hides
//! - `cells`: wide characters and wrapped lines, kept in order
//! - `snapshot`: the text that repaints a reset terminal

mod cells;
mod emulator;
mod feed;
mod scan;
mod skim;
mod snapshot;

#[cfg(test)]
mod tests;

use alacritty_terminal::vte::ansi::Processor;

use emulator::{Emulator, Immediate};
use scan::Scanner;

/// The most columns that a screen has.
pub const MAX_COLS: u16 = 1000;
/// The most rows that a screen has.
pub const MAX_ROWS: u16 = 500;

/// How large a screen is, in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns: 2 to [`MAX_COLS`].
    pub cols: u16,
    /// Rows: 1 to [`MAX_ROWS`].
    pub rows: u16,
}

impl Size {
    /// The nearest size that a screen can have: a wide character needs two columns.
    #[must_use]
    pub fn new(cols: u16, rows: u16) -> Self {
        Self { cols: cols.clamp(2, MAX_COLS), rows: rows.clamp(1, MAX_ROWS) }
    }
}

/// The state of one terminal.
pub struct Screen {
    emulator: Emulator,
    processor: Processor<Immediate>,
    scanner: Scanner,
    /// The beginning of a character whose other bytes have not come yet.
    carry: Vec<u8>,
    /// The character just printed, if nothing came after it: what a repetition repeats.
    printed: Option<char>,
    skimming: bool,
}

impl Screen {
    /// A blank screen, as after a reset.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            emulator: Emulator::new(Size::new(size.cols, size.rows)),
            processor: Processor::new(),
            scanner: Scanner::default(),
            carry: Vec::new(),
            printed: None,
            skimming: true,
        }
    }

    /// Whether [`feed`](Self::feed) leaves out what cannot be seen any more; it does unless told
    /// otherwise. What is shown is the same either way: this is for those who measure or compare.
    pub fn set_skimming(&mut self, skimming: bool) {
        self.skimming = skimming;
    }

    /// Changes the size: the primary page is wrapped again, the alternate one cut or extended, and
    /// the margins go to the edges.
    pub fn resize(&mut self, size: Size) {
        self.emulator.resize(Size::new(size.cols, size.rows));
        self.printed = None;
    }

    /// The size now.
    #[must_use]
    pub fn size(&self) -> Size {
        self.emulator.size()
    }

    /// The visible rows, top first, one a line, without the blanks at the end of each and without
    /// the empty rows at the end.
    #[must_use]
    pub fn text(&self) -> String {
        cells::text(self.emulator.grid())
    }

    /// The window's title, if a program set one: at most 256 characters, none a control character.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.emulator.titles.current()
    }

    /// The bytes of a character that was begun and not ended: 0 to 3. They cannot be in the text of
    /// a snapshot; who sends one sends them in front of what follows it. Empty for those who feed
    /// text that is cut between characters.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.carry
    }

    /// The text that repaints a reset terminal of the same size exactly: both pages, cursors, pen,
    /// modes, margins, tab stops, title, and at its end a control sequence that is half read.
    /// It asks the terminal nothing, and never touches a clipboard.
    pub fn snapshot(&mut self) -> String {
        snapshot::of(self)
    }
}
