//! The screen of a terminal, painted as late as possible.
//!
//! As long as the log is small and holds all that the terminal ever wrote, only the log is kept,
//! and a snapshot is painted on request. So idle sessions cost next to nothing.

use session::terminal::{
    log::{Chunk, Chunks, Log},
    query::Query,
    screen::{Screen, Size as Cells},
    size::Size,
};

use super::journaled::KeptScreen;

/// A session with a larger log than this, in bytes, keeps its screen.
const LITTLE: usize = 64 * 1024;
/// A session whose size changed more often than this keeps its screen, too.
const FEW_SIZES: usize = 64;

/// The screen of one session.
pub(crate) struct Painter {
    screen: Option<Screen>,
    /// The number of the last chunk that was fed to the screen.
    fed: u64,
    /// The sizes of the terminal, each with the number of the chunk after which it applies. A new
    /// screen begins with the first.
    sizes: Vec<(u64, Size)>,
    /// How many of these sizes the screen has had.
    resized: usize,
}

impl Painter {
    pub(crate) fn new(size: Size) -> Self {
        Self::after(0, size)
    }

    /// A blank screen of this size, on which the chunks after this number are painted.
    pub(crate) fn after(seq: u64, size: Size) -> Self {
        Self { screen: None, fed: seq, sizes: vec![(seq, size)], resized: 1 }
    }

    /// A screen that an earlier daemon has kept.
    ///
    /// The terminal has another size meanwhile, perhaps.
    pub(crate) fn kept(kept: &KeptScreen, size: Size) -> Self {
        let then = Size::new(kept.cols, kept.rows).unwrap_or(size);
        let mut painter = Self::after(kept.seq, then);
        painter.screen().feed(kept.data.as_bytes());
        if size != then {
            painter.resize(kept.seq, size);
        }
        painter
    }

    /// Notes that the terminal has another size after the chunk of this number.
    pub(crate) fn resize(&mut self, after: u64, size: Size) {
        self.sizes.push((after, size));
        if self.sizes.len() > FEW_SIZES {
            self.feed(Vec::new(), self.fed);
            self.forget_sizes();
        }
    }

    /// The part of the log that is not painted yet.
    pub(crate) fn lacking<'a>(&self, log: &'a Log) -> Chunks<'a> {
        log.after(self.fed).unwrap_or_else(|_| log.all())
    }

    /// Paints chunks up to the number `last`. The screen is kept from now on.
    pub(crate) fn feed(&mut self, chunks: Vec<Chunk>, last: u64) {
        for chunk in chunks {
            self.resize_up_to(chunk.seq - 1);
            self.screen().feed(&chunk.text);
        }
        self.resize_up_to(last);
        self.fed = last;
    }

    /// The screen's size, and the text that repaints it.
    pub(crate) fn snapshot(&mut self) -> (Cells, String) {
        let screen = self.screen();
        (screen.size(), screen.snapshot())
    }

    /// What the screen answers to a question that was just painted.
    pub(crate) fn answer(&mut self, query: &Query) -> Option<String> {
        self.screen().answer(query)
    }

    /// Drops the screen if it can be painted again from this log. Returns whether it did.
    pub(crate) fn drop_if_little(&mut self, log: &Log) -> bool {
        let is_little = log.first_seq() == 1 && log.size() <= LITTLE;
        let drops = is_little && self.sizes.first().is_some_and(|(after, _)| *after == 0);
        if drops {
            (self.screen, self.fed, self.resized) = (None, 0, 1);
        } else {
            self.forget_sizes();
        }
        drops
    }

    fn screen(&mut self) -> &mut Screen {
        let (_, size) = self.sizes.first().copied().unwrap_or((0, Size::DEFAULT));
        self.screen.get_or_insert_with(|| Screen::new(cells(size)))
    }

    fn resize_up_to(&mut self, seq: u64) {
        while let Some((after, size)) = self.sizes.get(self.resized).copied()
            && after <= seq
        {
            self.screen().resize(cells(size));
            self.resized += 1;
        }
    }

    /// Forgets the sizes that the screen has had, except the last.
    fn forget_sizes(&mut self) {
        self.sizes.drain(..self.resized.saturating_sub(1));
        self.resized = 1;
    }
}

fn cells(size: Size) -> Cells {
    Cells::new(size.cols(), size.rows())
}
