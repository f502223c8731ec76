//! Markdown, as models write it, on a terminal. Pure.
//!
//! A line break within a paragraph stays: models do not wrap their text, so in verses and addresses it has a
//! meaning.
//!
//! - [`render`]: a text as lines
//! - [`Painter`]: the same for a text that still arrives
//! - [`ansi`]: a line with the escape sequences of its styles
//! - `blocks`, `table`: the parts of a text
//! - `rows`: styled text in lines of some width

pub mod ansi;
mod blocks;
mod painter;
mod rows;
mod table;

use std::borrow::Cow;

use pulldown_cmark::{Event, Options, Parser};
pub use ratatui::layout::Size;
use ratatui::text::Line;

pub use self::painter::Painter;
use crate::{draw::theme::Theme, text};

/// A text as lines of at most `columns` columns, without anything that controls a terminal.
pub fn render(text: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let safe = text::block(text);
    let whole = with_definitions_shown(&safe);
    blocks::render(Parser::new_ext(&whole, OPTIONS), columns.max(1), theme)
}

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The offset of a text's last block. All before it is finished: more text does not change it.
fn last_block(text: &str) -> usize {
    let (mut depth, mut last) = (0_usize, 0);
    for (event, place) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        if depth == 0 {
            last = place.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    // A block begins with its whole line: blanks before its text belong to it.
    text[..last].rfind('\n').map_or(0, |end| end + 1)
}

/// The text with its link definitions as plain text. Blocks are shown one by one as they arrive, and a link
/// in one block could not find its definition in another. So links and definitions are shown as they were
/// written.
fn with_definitions_shown(text: &str) -> Cow<'_, str> {
    let parser = Parser::new_ext(text, OPTIONS);
    let mut starts: Vec<usize> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| definition.span.start)
        .collect();
    if starts.is_empty() {
        return Cow::Borrowed(text);
    }
    starts.sort_unstable();
    let mut shown = String::with_capacity(text.len() + starts.len());
    let mut from = 0;
    for start in starts {
        shown.push_str(&text[from..start]);
        shown.push('\\');
        from = start;
    }
    shown.push_str(&text[from..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, columns: usize) -> Vec<String> {
        let lines = render(text, columns, Theme::new(false));
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn paragraphs_are_wrapped_and_apart() {
        assert_eq!(
            shown("one **two** three four\nfive\n\nsix", 10),
            ["one two", "three four", "five", "", "six"]
        );
    }

    #[test]
    fn lists_hang_and_nest() {
        let text = "- one two three\n  - four\n- five\n\n3. six\n4. [x] seven\n";
        assert_eq!(
            shown(text, 12),
            ["• one two", "  three", "  • four", "• five", "", "3. six", "4. [x] seven"]
        );
        assert_eq!(shown("- a\n\n- b\n", 12), ["• a", "", "• b"], "a loose list");
        assert_eq!(shown("-\n- b\n", 12), ["•", "• b"], "an empty item");
    }

    #[test]
    fn code_is_between_rules_and_folded_anywhere() {
        let code = shown("```rust\nlet abc = 1;\n\n  x\n```\n", 8);
        assert_eq!(code, ["── rust", "let abc", "= 1;", "", "  x", "────────"]);
        assert_eq!(shown("a `b c` d", 20), ["a `b c` d"], "without colours it keeps its marks");
    }

    #[test]
    fn quotes_headings_rules_and_links_are_recognised() {
        let text = "# Title\n> quoted\n> more\n\n---\n[a](http://b) <http://c> ![d](e)\n";
        assert_eq!(
            shown(text, 40),
            [
                "Title",
                "",
                "│ quoted",
                "│ more",
                "",
                "────────────────────────────────────────",
                "",
                "a (http://b) http://c image: d (e)",
            ]
        );
    }

    #[test]
    fn a_table_fits_its_columns() {
        let text = "| Name | What |\n|---|---:|\n| a | one two three four |\n| b | 5 |\n";
        assert_eq!(
            shown(text, 40),
            [
                "Name │               What",
                "─────┼───────────────────",
                "a    │ one two three four",
                "b    │                  5"
            ]
        );
        let narrow = shown(text, 16);
        assert!(narrow.iter().all(|row| text::width(row) <= 16), "{narrow:?}");
        assert!(narrow.iter().any(|row| row.contains("three")), "{narrow:?}");
        let tiny = shown("|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n|1|2|3|4|5|6|\n", 9);
        assert!(tiny.iter().all(|row| text::width(row) <= 9), "{tiny:?}");
    }

    #[test]
    fn text_without_markdown_stays_as_it_was_written() {
        assert_eq!(shown("<b>x</b>\n\n[1]: http://a\n", 40), ["<b>x</b>", "", "[1]: http://a"]);
        assert_eq!(shown("see [a][1]\n\n[1]: http://a\n", 40)[0], "see [a][1]");
        assert_eq!(shown("a\u{1b}[2Jb", 40), ["a\u{fffd}[2Jb"]);
        assert_eq!(shown("", 40), Vec::<String>::new());
    }

    #[test]
    fn the_last_block_is_open() {
        assert_eq!(last_block("a\n\nb"), 3);
        assert_eq!(last_block("- a\n\n- b"), 0, "one list");
        assert_eq!(last_block("a\n\n  - b\n    - c"), 3);
        assert_eq!(last_block("```\na\n\nb"), 0);
        assert_eq!(last_block("a\n---\nb"), 6);
    }
}
