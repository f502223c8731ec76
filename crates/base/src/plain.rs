//! Makes text from others safe to show on a terminal.
//!
//! Names of models, nicknames, reasons and answers come from strangers. In a terminal their control
//! characters would move the cursor, set the title or type text. Characters that change the direction
//! of writing, and invisible ones, would make one name look like another.
//!
//! Invisible are the characters that Unicode calls default ignorable, and a few more that draw
//! nothing. Four of them have a use inside of words and emoji: the two joiners, and the selectors of
//! text and emoji form. These are kept where they act, directly after a visible character that is not
//! ASCII, and nowhere else. The flags of regions (a black flag and tags) are the one kind of emoji that
//! is not shown whole: tags can spell a hidden text.

use std::borrow::Cow;

/// Replaces a character that must not be sent to a terminal.
const UNSHOWN: char = '\u{fffd}';

/// The text on one line, without anything that controls a terminal.
pub fn line(text: &str) -> String {
    replaced(text, |_| false)
}

/// The same for a text of several lines. Line breaks and tabs are kept.
pub fn lines(text: &str) -> String {
    replaced(text, |c| matches!(c, '\n' | '\t'))
}

fn replaced(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let shown = |(c, steers)| if steers && !keeps(c) { UNSHOWN } else { c };
    judged(text).map(shown).collect()
}

/// Whether a text has anything that controls a terminal or is invisible.
pub fn is_unsafe(text: &str) -> bool {
    judged(text).any(|(_, steers)| steers)
}

/// The text without anything that controls a terminal.
pub fn stripped(text: &str) -> String {
    judged(text).filter(|(_, steers)| !steers).map(|(c, _)| c).collect()
}

/// Text that a program wrote for programs, such as JSON or a log line. Characters that control a
/// terminal are escaped as in JSON, so nothing is lost. ASCII control characters are kept: the writer
/// put them there itself, and has escaped those of others.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let escapes = |c: char, steers: bool| steers && !c.is_ascii_control() || c == '\u{7f}';
    if !judged(text).any(|(c, steers)| escapes(c, steers)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut units = [0; 2];
    for (c, steers) in judged(text) {
        match escapes(c, steers) {
            // JSON knows code units of UTF-16 only.
            true => c.encode_utf16(&mut units).iter().for_each(|unit| {
                shown.push_str(&format!("\\u{unit:04x}"));
            }),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Each character, and whether it controls a terminal instead of being shown, where it stands.
fn judged(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut after = Before::Nothing;
    text.char_indices().map(move |(at, c)| {
        let acts = match after {
            // A digit, or another key, in its frame.
            Before::Nothing => is_selector(c) && text[at + c.len_utf8()..].starts_with(KEYCAP),
            Before::Visible => is_joining(c),
            // A heart in emoji form, joined to a fire.
            Before::Selector => c == JOINER,
        };
        let steers = is_steering(c) && !acts;
        after = match c {
            _ if acts && is_selector(c) => Before::Selector,
            _ if steers || acts || c.is_ascii() || c.is_whitespace() => Before::Nothing,
            _ => Before::Visible,
        };
        (c, steers)
    })
}

/// The character before, for the few that act on it.
enum Before {
    /// None on which they could act.
    Nothing,
    /// A visible one that is not ASCII.
    Visible,
    /// One in text or emoji form.
    Selector,
}

/// Zero width joiner.
const JOINER: char = '\u{200d}';

/// The frame of a key, such as `1` in emoji form.
const KEYCAP: char = '\u{20e3}';

fn is_joining(c: char) -> bool {
    c == JOINER || c == '\u{200c}' || is_selector(c)
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Whether a character alone controls a terminal or is invisible: a control character (C0, C1 and
/// DEL), a line separator, or one that draws nothing.
fn is_steering(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_invisible(c)
}

/// The property `Default_Ignorable_Code_Point` of Unicode 17, and what else draws nothing.
fn is_invisible(c: char) -> bool {
    let is_ignorable = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    // An empty Braille cell, annotation marks, an empty note head.
    is_ignorable || matches!(c, '\u{2800}' | '\u{fff9}'..='\u{fffb}' | '\u{1d159}')
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
        assert_eq!(stripped(&format!("a{STEERING}b\n")), "ab");
        for kept in ["Zoë", "שלום", "模型"] {
            assert_eq!((line(kept), lines(kept)), (kept.to_owned(), kept.to_owned()));
            assert!(!is_unsafe(kept));
        }
    }

    #[test]
    fn no_two_names_look_alike_by_what_is_invisible() {
        // Soft hyphen, grapheme joiner, Hangul fillers, Khmer vowels, Mongolian marks, joiners, a
        // selector of each kind, reserved ones, shorthand and music controls, tags, an empty Braille
        // cell, an annotation mark.
        let invisible = "\u{ad}\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{17b4}\u{180b}\u{180e}\u{200b}\
            \u{200c}\u{200d}\u{2060}\u{2065}\u{fe00}\u{fe0f}\u{feff}\u{fff0}\u{1bca0}\u{1d173}\u{e0001}\u{e0041}\
            \u{e007f}\u{e0100}\u{e01ef}\u{e0fff}\u{2800}\u{fff9}\u{1d159}";
        for c in invisible.chars() {
            let name = format!("gpt{c}x");
            assert!(is_unsafe(&name), "{c:?}");
            assert_eq!((line(&name), lines(&name)), ("gpt\u{fffd}x".into(), "gpt\u{fffd}x".into()));
            assert!(escaped(&name).is_ascii(), "{c:?}");
        }
        for twice in ["é\u{200d}\u{200d}", "é\u{fe0f}\u{fe0f}", "é\u{200c}\u{fe0f}", "é \u{200d}"]
        {
            assert_eq!(line(twice).matches(UNSHOWN).count(), 1, "{twice:?}");
        }
    }

    #[test]
    fn emoji_and_scripts_that_need_joiners_are_whole() {
        let rocket = "👩\u{200d}🚀";
        let burning_heart = "\u{2764}\u{fe0f}\u{200d}\u{1f525}";
        let kept = [
            rocket,
            burning_heart,
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "👍🏽",
        ];
        for kept in kept {
            assert_eq!(line(kept), kept);
            assert_eq!(escaped(kept), kept);
        }
    }

    #[test]
    fn escaped_text_is_the_same_to_programs() {
        assert_eq!(escaped("{\n \"a\": \"b\\u001b\"}"), "{\n \"a\": \"b\\u001b\"}");
        assert_eq!(escaped("\"é\u{9b}\u{7f}\u{202e}\""), "\"é\\u009b\\u007f\\u202e\"");
        // Beyond 16 bits, as JSON has it.
        assert_eq!(escaped("\u{e0041}"), "\\udb40\\udc41");
        assert_eq!(
            escaped("\u{1b}[32mINFO\u{1b}[0m \u{2066}\n"),
            "\u{1b}[32mINFO\u{1b}[0m \\u2066\n"
        );
    }
}
