//! The present screen of a terminal, and the text that repaints it elsewhere.
//!
//! The history is in the log. This module keeps only the screen, both of its pages, and the modes
//! that programs set. It can answer what programs ask their terminal; `query` says when it does.
//!
//! - [`Size`], [`Screen`]: the public types
//! - `answer`: what the screen answers to a program
//! - `feed`: takes bytes, and cuts them into pieces that the engine can read whole
//! - `scan`: finds the end of a control sequence, within a bound; `skim`: skips text that nobody
//!   will see
//! - `emulator`: the engine, and the state that the engine hides
//! - `cells`: keeps wide characters and wrapped lines whole; `width`: the cells of a character, here and in
//!   other terminals
//! - `snapshot`: the text that repaints a reset terminal

mod answer;
mod cells;
mod emulator;
mod feed;
mod scan;
mod skim;
mod snapshot;
mod width;

#[cfg(test)]
mod tests;

use alacritty_terminal::vte::ansi::Processor;

use emulator::{Emulator, Immediate};
use scan::Scanner;

/// The most columns of a screen.
pub const MAX_COLS: u16 = 1000;
/// The most rows of a screen.
pub const MAX_ROWS: u16 = 500;

/// The size of a screen, in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns: 2 to [`MAX_COLS`].
    pub cols: u16,
    /// Rows: 1 to [`MAX_ROWS`].
    pub rows: u16,
}

impl Size {
    /// The nearest size that a screen can have. The least is two columns, since a wide character
    /// needs two.
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
    /// The beginning of a character whose other bytes have not arrived yet.
    carry: Vec<u8>,
    /// The character just printed, if nothing came after it: the control sequence REP repeats it.
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

    /// Sets whether [`feed`](Self::feed) skips text that has already scrolled away at the end of a
    /// call; it does by default. The screen is the same either way: this setting is for
    /// measurements and comparisons.
    pub fn set_skimming(&mut self, skimming: bool) {
        self.skimming = skimming;
    }

    /// Changes the size. The primary page is wrapped again, the alternate page is cut or extended,
    /// and the margins move to the edges.
    pub fn resize(&mut self, size: Size) {
        self.emulator.resize(Size::new(size.cols, size.rows));
        self.printed = None;
    }

    /// The size now.
    #[must_use]
    pub fn size(&self) -> Size {
        self.emulator.size()
    }

    /// The visible rows, top first, each on a line of its own, without trailing blanks and without
    /// empty rows at the end.
    #[must_use]
    pub fn text(&self) -> String {
        cells::text(self.emulator.grid())
    }

    /// The window's title, if a program has set one: at most 256 characters, without control
    /// characters.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.emulator.titles.current()
    }

    /// The 0 to 3 bytes of a character that has begun but not ended. The text of a snapshot cannot
    /// hold them; a caller that sends a snapshot sends them before the output that follows it.
    /// Always empty for a caller that feeds text cut between characters.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.carry
    }

    /// The text that exactly repaints a reset terminal of the same size: both pages, cursors, pen,
    /// modes, margins, tab stops, title, and at its end an unfinished control sequence. The text
    /// sends the terminal no query, and never touches a clipboard.
    pub fn snapshot(&mut self) -> String {
        snapshot::of(self)
    }
}
