//! The screen of a terminal, painted as late as possible.
//!
//! While the log is small and holds all that the terminal ever wrote, only the log is kept,
//! and a snapshot is painted on request. So idle sessions need almost no memory.

use bytes::{Bytes, BytesMut};
use session::terminal::{
    log::{Chunk, Chunks, Log},
    query::Query,
    screen::{Screen, Size as Cells},
    size::Size,
};

use super::journal::JournalScreen;

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

    /// The screen that an earlier daemon left in the journal, in a terminal that has this size now.
    pub(crate) fn from_journal(screen: &JournalScreen, size: Size) -> Self {
        let then = Size::new(screen.cols, screen.rows).unwrap_or(size);
        let mut painter = Self::after(screen.seq, then);
        painter.screen().feed(screen.data.as_bytes());
        if size != then {
            painter.resize(screen.seq, size);
        }
        painter
    }

    /// Notes that the terminal has another size after the chunk of this number.
    pub(crate) fn resize(&mut self, after: u64, size: Size) {
        self.sizes.push((after, size));
    }

    /// Whether all output has to be painted before the next change of the size, so that the earlier sizes are
    /// forgotten.
    pub(crate) const fn has_many_sizes(&self) -> bool {
        self.sizes.len() > FEW_SIZES
    }

    /// The part of the log that is not painted yet.
    pub(crate) fn lacking<'a>(&self, log: &'a Log) -> Chunks<'a> {
        log.after(self.fed).unwrap_or_else(|_| log.all())
    }

    /// Paints chunks up to the number `last`. The screen is kept from now on.
    pub(crate) fn feed(&mut self, chunks: &[Chunk], last: u64) {
        let mut rest = chunks;
        while let Some(first) = rest.first() {
            self.resize_up_to(first.seq - 1);
            let (run, others) = rest.split_at(self.before_resize(rest));
            self.screen().feed(&joined(run));
            rest = others;
        }
        self.resize_up_to(last);
        self.fed = last;
        if self.has_many_sizes() {
            self.forget_sizes();
        }
    }

    /// The screen's size, and the text that repaints it.
    pub(crate) fn snapshot(&mut self) -> (Cells, String) {
        let screen = self.screen();
        (screen.size(), screen.snapshot())
    }

    /// The screen's answer to a query that was just painted.
    pub(crate) fn answer(&mut self, query: &Query) -> Option<String> {
        self.screen().answer(query)
    }

    /// Drops the screen if it can be painted again from this log at little cost. Returns whether it was dropped.
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

    /// How many of these chunks come before the next change of the size. The first chunk always does.
    fn before_resize(&self, chunks: &[Chunk]) -> usize {
        let next = self.sizes.get(self.resized);
        next.map_or(chunks.len(), |(after, _)| chunks.partition_point(|chunk| chunk.seq <= *after))
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

/// The text of chunks in one piece: lines that scroll away within a piece are never painted.
fn joined(chunks: &[Chunk]) -> Bytes {
    match chunks {
        [only] => only.text.clone(),
        several => {
            let length = several.iter().map(|chunk| chunk.text.len()).sum();
            let mut text = BytesMut::with_capacity(length);
            several.iter().for_each(|chunk| text.extend_from_slice(&chunk.text));
            text.freeze()
        }
    }
}

fn cells(size: Size) -> Cells {
    Cells::new(size.cols(), size.rows())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::sessions::output::{
        Output,
        screen::{OutputLock, PaintedScreen},
    };

    fn chunk(seq: u64) -> Chunk {
        Chunk { seq, text: format!("{seq} {}\r\n\x1b[3{}mé", "x".repeat(50), seq % 8).into() }
    }

    #[test]
    fn chunks_that_are_painted_together_have_the_sizes_that_each_had() {
        let sizes = [(2, 60, 10), (2, 30, 9), (5, 20, 8)];
        let painted = |groups: &[&[u64]]| {
            let mut painter = Painter::new(Size::DEFAULT);
            for (after, cols, rows) in sizes {
                painter.resize(after, Size::new(cols, rows).unwrap());
            }
            for group in groups {
                let chunks: Vec<_> = group.iter().copied().map(chunk).collect();
                painter.feed(&chunks, *group.last().unwrap());
            }
            painter.snapshot().1
        };
        let alone = painted(&[&[1], &[2], &[3], &[4], &[5], &[6]]);
        assert_eq!(painted(&[&[1, 2, 3, 4, 5, 6]]), alone);
        assert_eq!(painted(&[&[1], &[2, 3, 4], &[5, 6]]), alone);
    }

    /// A terminal's output that no session's lock covers.
    struct Free(Mutex<Output>);

    impl OutputLock for Free {
        fn with_output<T>(&self, act: impl FnOnce(&mut Output, Size) -> T) -> T {
            act(&mut self.0.lock().unwrap(), Size::DEFAULT)
        }
    }

    #[test]
    fn a_terminal_that_is_resized_often_keeps_few_sizes_and_looks_the_same() {
        for snapshot_every in [1, 50, usize::MAX] {
            let output = Free(Mutex::new(Output::new(1 << 20)));
            let painted = PaintedScreen::new(Size::DEFAULT);
            let mut expected = Screen::new(cells(Size::DEFAULT));
            for round in 1..=500_usize {
                let text = Bytes::from(format!("{round} {}\r\n", "x".repeat(round % 90)));
                expected.feed(&text);
                let now = std::time::Instant::now();
                let seq = output.with_output(|output, _| output.append(text, now));
                let size = Size::new(60 + (round % 40) as u16, 20).unwrap();
                expected.resize(cells(size));
                painted.lock_to_resize(&output).resize(seq, size);
                if round % snapshot_every == 0 {
                    assert_eq!(painted.snapshot(&output).2, expected.snapshot());
                }
                assert!(painted.lock().sizes.len() <= FEW_SIZES + 1);
            }
            assert_eq!(painted.snapshot(&output).2, expected.snapshot());
        }
    }
}
