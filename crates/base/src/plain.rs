//! Makes text from others safe to show on a terminal.
//!
//! Names of models, nicknames, reasons and answers come from strangers. In a terminal their control
//! characters would move the cursor, set the title or type text. Characters that change the direction
//! of writing, and invisible ones, would make one name look like another.

use std::borrow::Cow;

/// Replaces a character that must not be sent to a terminal.
const UNSHOWN: char = '\u{fffd}';

/// The text on one line, without anything that controls a terminal.
pub fn line(text: &str) -> String {
    text.chars().map(|c| if is_steering(c) { UNSHOWN } else { c }).collect()
}

/// The same for a text of several lines. Line breaks and tabs are kept.
pub fn lines(text: &str) -> String {
    let steers = |c: char| is_steering(c) && !matches!(c, '\n' | '\t');
    text.chars().map(|c| if steers(c) { UNSHOWN } else { c }).collect()
}

/// Text that a program wrote for programs, such as JSON or a log line. Characters that control a
/// terminal are escaped as in JSON, so nothing is lost. ASCII control characters are kept: the writer
/// put them there itself, and has escaped those of others.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let escapes = |c: char| is_steering(c) && !c.is_ascii_control() || c == '\u{7f}';
    if !text.contains(escapes) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match escapes(c) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character controls a terminal instead of being shown: a control character (C0, C1 and
/// DEL), a mark that changes the direction of writing, a line separator, or an invisible character.
/// Joiners do not count: emoji and some scripts need them.
pub fn is_steering(c: char) -> bool {
    let is_format = matches!(c,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || is_format
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind: ESC, C1, DEL, a mark, an override, an isolate, a line separator, an invisible
    /// one.
    const STEERING: &str = "\u{1b}\u{9b}\u{7f}\u{200f}\u{202e}\u{2066}\u{2028}\u{200b}\u{feff}";

    #[test]
    fn nothing_in_a_text_steers_the_terminal() {
        let shown = line(&format!("a{STEERING}\r\n\tb"));
        assert_eq!(shown, format!("a{}b", "\u{fffd}".repeat(STEERING.chars().count() + 3)));
        assert_eq!(lines("a\n\tb\u{1b}[2Jc\r\u{202e}d"), "a\n\tb\u{fffd}[2Jc\u{fffd}\u{fffd}d");
        for kept in ["Zoë", "👩\u{200d}🚀", "שלום", "模型"] {
            assert_eq!((line(kept), lines(kept)), (kept.to_owned(), kept.to_owned()));
        }
    }

    #[test]
    fn escaped_text_is_the_same_to_programs() {
        assert_eq!(escaped("{\n \"a\": \"b\\u001b\"}"), "{\n \"a\": \"b\\u001b\"}");
        assert_eq!(escaped("\"é\u{9b}\u{7f}\u{202e}\""), "\"é\\u009b\\u007f\\u202e\"");
        assert_eq!(
            escaped("\u{1b}[32mINFO\u{1b}[0m \u{2066}\n"),
            "\u{1b}[32mINFO\u{1b}[0m \\u2066\n"
        );
    }
}
