//! Strangers' texts, made safe for a terminal, and their width there.

pub use base::plain::line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns of a tab.
const TAB: &str = "    ";

/// A text of several lines without anything that controls a terminal. Line breaks are kept.
pub fn block(text: &str) -> String {
    base::plain::lines(&text.replace('\r', "")).replace('\t', TAB)
}

/// The number of columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A text in at most `columns` columns, with an ellipsis where something was cut off.
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    match columns {
        0 => String::new(),
        1 => "…".to_owned(),
        _ => format!("{}…", head(text, columns - 1).0),
    }
}

/// A name in at most `columns` columns. A long one is shortened in the middle: names of one family differ at their
/// ends.
pub fn middle(name: &str, columns: usize) -> String {
    if width(name) <= columns {
        return name.to_owned();
    }
    // One column is for the ellipsis.
    let Some(room) = columns.checked_sub(1).filter(|room| *room > 0) else {
        return clip(name, columns);
    };
    let begin = head(name, room - room / 2).0;
    let end = tail(&name[begin.len()..], room.saturating_sub(width(begin)));
    format!("{begin}…{end}")
}

/// The end of a text that fits into `columns` columns.
fn tail(text: &str, columns: usize) -> &str {
    let (mut taken, mut from) = (0, text.len());
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        taken += width(grapheme);
        if taken > columns {
            break;
        }
        from = at;
    }
    &text[from..]
}

/// A text in lines of at most `columns` columns, broken between words where that is possible.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrap_line(line, columns.max(1))).collect()
}

fn wrap_line(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_word_bounds() {
        if width(&line) + width(word) > columns && !line.is_empty() {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
        }
        if line.is_empty() && !lines.is_empty() && word.trim().is_empty() {
            continue;
        }
        line.push_str(word);
        while width(&line) > columns {
            let (fits, rest) = head(&line, columns);
            if rest.is_empty() {
                break;
            }
            let (fits, rest) = (fits.to_owned(), rest.to_owned());
            lines.push(fits);
            line = rest;
        }
    }
    lines.push(line);
    lines
}

/// A text in lines of at most `columns` columns, broken anywhere, as an input field shows it.
pub fn fold(text: &str, columns: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| fold_line(line, columns.max(1))).collect()
}

fn fold_line(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while width(rest) >= columns && !rest.is_empty() {
        let (fits, after) = head(rest, columns);
        lines.push(fits.to_owned());
        rest = after;
    }
    lines.push(rest.to_owned());
    lines
}

/// The beginning of a text that fits into `columns` columns, and the rest. At least one character,
/// so that cutting a text up always ends.
fn head(text: &str, columns: usize) -> (&str, &str) {
    let mut taken = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        taken += width(grapheme);
        if taken > columns && at > 0 {
            return text.split_at(at);
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_steers_the_terminal() {
        assert_eq!(block("a\tb\r\nc\u{7}"), "a    b\nc\u{fffd}");
    }

    #[test]
    fn wide_characters_count_for_two_columns() {
        assert_eq!(width("日本"), 4);
        assert_eq!(clip("日本語", 5), "日本…");
        assert_eq!(clip("日本語", 4), "日…");
        assert_eq!((clip("abc", 3), clip("abc", 0)), ("abc".to_owned(), String::new()));
    }

    #[test]
    fn names_are_shortened_in_the_middle() {
        assert_eq!(middle("qwen3-coder:30b-a3b-q4_K_M", 17), "qwen3-co…b-q4_K_M");
        assert_eq!(middle("short", 5), "short");
        assert_eq!(middle("日本語日本語", 6), "日…語", "no half characters");
        assert_eq!([0, 1, 2, 3].map(|columns| middle("abcdef", columns)), ["", "…", "a…", "a…f"]);
    }

    #[test]
    fn lines_are_broken_between_words_where_that_is_possible() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a\n\nb", 8), ["a", "", "b"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("日", 1), ["日"]);
    }

    #[test]
    fn typed_text_is_broken_anywhere_and_leaves_room_for_the_cursor() {
        assert_eq!(fold("abc de", 4), ["abc ", "de"]);
        assert_eq!(fold("abcd", 4), ["abcd", ""]);
        assert_eq!(fold("", 4), [""]);
    }
}
