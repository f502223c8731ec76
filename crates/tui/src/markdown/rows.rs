//! Styled text in lines of some width.

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation;

use crate::text;

/// A character as it is shown.
struct Cell<'a> {
    text: &'a str,
    style: Style,
    width: usize,
}

impl Cell<'_> {
    fn is_blank(&self) -> bool {
        self.text == " "
    }

    fn is_break(&self) -> bool {
        self.text == "\n"
    }
}

/// The places at which a styled text may be broken into lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaks {
    /// Between words, where that is possible.
    Words,
    /// Anywhere: every blank counts.
    Anywhere,
}

/// A styled text in lines of at most `columns` columns; at least one.
pub(super) fn wrap(spans: &[Span<'_>], columns: usize, breaks: Breaks) -> Vec<Line<'static>> {
    let cells: Vec<Cell<'_>> = spans.iter().flat_map(cells).collect();
    let (mut lines, mut from) = (Vec::new(), 0);
    loop {
        let cut = cut(&cells[from..], columns.max(1), breaks);
        lines.push(line(&cells[from..from + cut.shown]));
        from += cut.next;
        if !cut.goes_on {
            return lines;
        }
    }
}

/// How many columns a styled text takes on one line.
pub(super) fn width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| text::width(&span.content)).sum()
}

fn cells<'a>(span: &'a Span<'_>) -> impl Iterator<Item = Cell<'a>> {
    let style = span.style;
    let cell = move |text: &'a str| Cell { text, style, width: text::width(text) };
    span.content.graphemes(true).map(cell)
}

/// The end of a line: the number of cells that it shows, the start of the next one, and whether there is one.
struct Cut {
    shown: usize,
    next: usize,
    goes_on: bool,
}

fn cut(cells: &[Cell<'_>], columns: usize, breaks: Breaks) -> Cut {
    let (mut width, mut last) = (0, None);
    for (at, cell) in cells.iter().enumerate() {
        if cell.is_break() {
            return Cut { shown: at, next: at + 1, goes_on: true };
        }
        let is_wide = at > 0 && (cell.width > 1 || cells[at - 1].width > 1);
        if at > 0 && breaks == Breaks::Words && (cell.is_blank() || is_wide) {
            last = Some(at);
        }
        width += cell.width;
        if width > columns && at > 0 {
            let shown = last.unwrap_or(at);
            let is_skipped = |cell: &&Cell<'_>| breaks == Breaks::Words && cell.is_blank();
            let skipped = cells[shown..].iter().take_while(is_skipped).count();
            let next = shown + skipped;
            return Cut { shown, next, goes_on: next < cells.len() };
        }
    }
    Cut { shown: cells.len(), next: cells.len(), goes_on: false }
}

/// A line of these cells. Neighbours of the same style become one span.
fn line(cells: &[Cell<'_>]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for cell in cells {
        match spans.last_mut() {
            Some(span) if span.style == cell.style => span.content.to_mut().push_str(cell.text),
            _ => spans.push(Span::styled(cell.text.to_owned(), cell.style)),
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(spans: &[Span<'_>], columns: usize) -> Vec<String> {
        wrap(spans, columns, Breaks::Words).iter().map(Line::to_string).collect()
    }

    #[test]
    fn a_word_of_two_styles_stays_whole() {
        let spans = [Span::raw("one tw"), Span::styled("o", Style::new().bold()), Span::raw("! x")];
        assert_eq!(wrapped(&spans, 6), ["one", "two! x"]);
    }

    #[test]
    fn long_words_and_wide_characters_are_broken_anywhere() {
        assert_eq!(wrapped(&[Span::raw("abcdef")], 4), ["abcd", "ef"]);
        assert_eq!(wrapped(&[Span::raw("日本語です")], 5), ["日本", "語で", "す"]);
        assert_eq!(wrapped(&[Span::raw("日")], 1), ["日"]);
        assert_eq!(wrapped(&[Span::raw("abc   def")], 3), ["abc", "def"]);
        assert_eq!(wrapped(&[Span::raw("abc ")], 3), ["abc"], "nothing follows a blank at the end");
    }

    #[test]
    fn code_keeps_its_blanks() {
        let lines = wrap(&[Span::raw("a   b\nc")], 3, Breaks::Anywhere);
        let lines: Vec<String> = lines.iter().map(Line::to_string).collect();
        assert_eq!(lines, ["a  ", " b", "c"]);
    }
}
