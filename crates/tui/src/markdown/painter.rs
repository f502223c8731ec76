//! Markdown that still arrives, painted without flicker: a pure machine.
//!
//! Blocks that are finished are never painted again. Of the block that is open, only the lines that have
//! changed are painted again, mostly the last one. Lines that have left the screen stay as they are.

use ratatui::layout::Size;

use super::{ansi, last_block, render};
use crate::draw::theme::Theme;

/// The most columns of a line: longer lines are hard to read.
const WIDEST: u16 = 120;

/// The most bytes of a block that is painted again; a longer one counts as finished.
const LONGEST: usize = 256 * 1024;

/// Paints a text on a terminal while it arrives.
#[derive(Debug)]
pub struct Painter {
    theme: Theme,
    /// The columns of the block that is open.
    columns: usize,
    /// The text of the block that is open, and all text after it.
    open: String,
    /// The lines of that block on the screen. The cursor is at the end of the last one.
    shown: Vec<String>,
    /// Whether a finished block was painted, so that an empty line comes before the next.
    is_after: bool,
    is_dirty: bool,
}

impl Painter {
    /// Paints at the beginning of a line.
    pub fn new(colour: bool, size: Size) -> Self {
        let mut painter = Self {
            theme: Theme::new(colour),
            columns: 1,
            open: String::new(),
            shown: Vec::new(),
            is_after: false,
            is_dirty: false,
        };
        painter.fit(size);
        painter
    }

    /// Takes more text that has arrived.
    pub fn push(&mut self, text: &str) {
        self.open.push_str(text);
        self.is_dirty = true;
    }

    /// Whether text has arrived that is not painted.
    pub const fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// The text to write to a terminal of this size now. The beginning of a line whose meaning is still
    /// open, such as a dash, waits for more text.
    pub fn paint(&mut self, size: Size) -> String {
        self.is_dirty = false;
        let known = self.open.len() - undecided(&self.open);
        let waits = self.open.split_off(known);
        let finished = if self.open.len() > LONGEST { known } else { last_block(&self.open) };
        let painted = self.paint_to(finished, size);
        self.open.push_str(&waits);
        painted
    }

    /// As [`Painter::paint`], at the end of the text: nothing waits. The next text begins on a new line.
    pub fn finish(&mut self, size: Size) -> String {
        let mut painted = self.paint_to(self.open.len(), size);
        if self.is_after {
            painted.push_str("\r\n");
        }
        (self.is_after, self.is_dirty) = (false, false);
        self.shown.clear();
        self.fit(size);
        painted
    }

    /// Paints all the open text. The blocks before the offset `finished` are not painted again later.
    fn paint_to(&mut self, finished: usize, size: Size) -> String {
        let (done, rest) = (self.open[..finished].to_owned(), self.open[finished..].to_owned());
        let mut lines = self.lines(&done);
        let is_done = !lines.is_empty();
        let count = lines.len();
        self.is_after |= is_done;
        lines.extend(self.lines(&rest));
        let painted = repainted(&self.shown, &lines, size);
        if is_done {
            self.open = rest;
            // The cursor is on the last line, even if that is a finished one.
            lines.drain(..count.min(lines.len() - 1));
            self.fit(size);
        }
        self.shown = lines;
        painted
    }

    fn lines(&self, text: &str) -> Vec<String> {
        let lines = render(text, self.columns, self.theme);
        let gap = (self.is_after && !lines.is_empty()).then(String::new);
        gap.into_iter().chain(lines.iter().map(ansi::line)).collect()
    }

    /// Takes the width of the terminal for the next block.
    fn fit(&mut self, size: Size) {
        // A full line would leave the cursor between two lines.
        self.columns = usize::from(size.width.saturating_sub(1).clamp(1, WIDEST));
    }
}

/// The number of bytes at the end whose meaning is open: a last line without a letter.
fn undecided(text: &str) -> usize {
    let line = text.rfind('\n').map_or(0, |end| end + 1);
    let is_mark = |c: char| c.is_ascii_punctuation() || c.is_ascii_digit() || c.is_whitespace();
    if text[line..].chars().all(is_mark) { text.len() - line } else { 0 }
}

/// The text that turns the old lines on the screen into the new ones. The cursor is at the end of the last
/// line, before and after.
fn repainted(old: &[String], new: &[String], size: Size) -> String {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    if same == old.len() && same == new.len() {
        return String::new();
    }
    let Some(last) = old.len().checked_sub(1) else { return new.join("\r\n") };
    if same == old.len() {
        return format!("\r\n{}", new[same..].join("\r\n"));
    }
    // In the usual case, one more word, nothing is erased, since that would flicker.
    if same == last && new.len() > last && is_plain_beginning(&old[last], &new[last]) {
        let rest = std::iter::once(&new[last][old[last].len()..]);
        let rest: Vec<&str> = rest.chain(new[old.len()..].iter().map(String::as_str)).collect();
        return rest.join("\r\n");
    }
    // Lines that have left the screen cannot be reached.
    let from = same.max(last.saturating_sub(usize::from(size.height.saturating_sub(1))));
    let up = match last - from {
        0 => String::new(),
        lines => format!("\u{1b}[{lines}A"),
    };
    format!("{up}\r\u{1b}[J{}", new.get(from..).unwrap_or_default().join("\r\n"))
}

/// Whether the line on the screen only has to be continued.
fn is_plain_beginning(old: &str, new: &str) -> bool {
    new.starts_with(old) && !old.contains('\u{1b}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 41, height: 12 };

    const TEXT: &str = "# A title\n\nSome **bold words** and `code` that go on and on until they are \
        wrapped.\n\n- one\n- two\n  - three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {\n    \
        // -\n}\n```\n1. x\n2. y\n\nThe end";

    fn screen() -> vt100::Parser {
        let size = |cells| std::num::NonZero::new(cells).unwrap();
        vt100::Parser::new(size(SIZE.height), size(SIZE.width), 1_000)
    }

    /// All lines, those that have scrolled away too.
    fn all(parser: &mut vt100::Parser) -> String {
        let screen = parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let mut lines = Vec::new();
        for offset in (1..=above).rev() {
            screen.set_scrollback(offset);
            lines.extend(screen.rows(0, SIZE.width).next());
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, SIZE.width));
        lines.join("\n").trim_end().to_owned()
    }

    /// The text, painted after each piece of some bytes.
    fn painted(text: &str, bytes: usize) -> (String, usize) {
        let (mut painter, mut screen) = (Painter::new(true, SIZE), screen());
        let (mut sent, mut from) = (0, 0);
        while from < text.len() {
            let to = text.ceil_char_boundary((from + bytes).min(text.len()));
            painter.push(&text[from..to]);
            let paint = painter.paint(SIZE);
            sent += paint.len();
            screen.process(paint.as_bytes());
            from = to;
        }
        screen.process(painter.finish(SIZE).as_bytes());
        screen.process(b"next");
        (all(&mut screen), sent)
    }

    #[test]
    fn a_text_looks_the_same_however_it_arrives() {
        let whole = painted(TEXT, TEXT.len()).0;
        assert!(whole.contains("fn main() {\n    // -\n}"), "{whole}");
        assert!(whole.ends_with("\n\nThe end\nnext"), "{whole}");
        for bytes in [1, 2, 3, 7, 20] {
            assert_eq!(painted(TEXT, bytes).0, whole, "{bytes}");
        }
    }

    #[test]
    fn of_prose_only_the_last_line_is_sent_again() {
        let prose = "plain words ".repeat(200);
        let sent = painted(&prose, 3).1;
        assert!(sent < prose.len() * 3, "{sent} of {}", prose.len());
    }

    #[test]
    fn a_block_that_is_taller_than_the_screen_goes_on_at_its_end() {
        let code: String = (0..40).map(|line| format!("line {line}\n")).collect();
        let whole = painted(&format!("```\n{code}```\n"), 5).0;
        for line in 0..40 {
            assert_eq!(whole.matches(&format!("line {line}\n")).count(), 1, "{line}: {whole}");
        }
    }

    #[test]
    fn a_block_without_an_end_is_let_go() {
        let mut painter = Painter::new(true, SIZE);
        painter.push(&"a b\n".repeat(LONGEST / 4 + 1));
        painter.paint(SIZE);
        assert_eq!((painter.open.len(), painter.shown.len()), (0, 1));
    }

    #[test]
    fn marks_wait_for_their_line() {
        let mut painter = Painter::new(true, SIZE);
        painter.push("Things\n-");
        assert_eq!(painter.paint(SIZE), "Things", "no heading");
        painter.push(" one");
        assert_eq!(painter.paint(SIZE), "\r\n\r\n• one");
        assert_eq!(painter.finish(SIZE), "\r\n");
        assert_eq!(painter.finish(SIZE), "", "nothing was written");
    }
}
