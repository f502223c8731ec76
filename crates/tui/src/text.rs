//! What a terminal may be shown of strangers' texts, and how wide it is there.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands for a character that a terminal must not be sent.
const UNSHOWN: char = '\u{fffd}';

/// Columns that a tab is shown in.
const TAB: &str = "    ";

/// A text in one line, without characters that steer a terminal or turn the direction of writing.
pub fn line(text: &str) -> String {
    text.chars().map(|c| if is_steering(c) { UNSHOWN } else { c }).collect()
}

/// The same for a text of several lines, which it keeps.
pub fn block(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars().filter(|c| *c != '\r') {
        match c {
            '\n' => shown.push(c),
            '\t' => shown.push_str(TAB),
            c if is_steering(c) => shown.push(UNSHOWN),
            c => shown.push(c),
        }
    }
    shown
}

fn is_steering(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A text in at most so many columns, with an ellipsis where something was cut off.
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let kept = head(text, columns.saturating_sub(1)).0;
    if columns == 0 { String::new() } else { format!("{kept}…") }
}

/// A text in lines of at most so many columns, broken between words where that is possible.
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

/// A text in lines of at most so many columns, broken anywhere: as an input shows what is typed.
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

/// The beginning of a text that fits into so many columns, and the rest. At least one character,
/// so that whoever cuts a text up comes to its end.
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
        assert_eq!(line("a\u{1b}[2J\nb\u{202e}c"), "a\u{fffd}[2J\u{fffd}b\u{fffd}c");
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
    fn lines_are_broken_between_words_where_that_is_possible() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a\n\nb", 8), ["a", "", "b"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("日", 1), ["日"]);
    }

    #[test]
    fn what_is_typed_is_broken_anywhere_and_leaves_room_for_the_cursor() {
        assert_eq!(fold("abc de", 4), ["abc ", "de"]);
        assert_eq!(fold("abcd", 4), ["abcd", ""]);
        assert_eq!(fold("", 4), [""]);
    }
}
