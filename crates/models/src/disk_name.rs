//! Names of models and files as names on a disk. Most systems take them as they are. Windows does not take some characters, the
//! colon before a quantisation among them, nor the names of devices.
//!
//! A character that is not taken is written as the one that is `0xF000` higher, which has no other use: Cygwin and WSL do the same.

use std::borrow::Cow;

use crate::system::TAKES_ALL_NAMES;

/// The distance between a character and the one that is written for it.
const ESCAPE: u32 = 0xf000;

/// The names of devices, which Windows takes for these in any directory, with any ending.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// The same, with a digit after them.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// A segment of a name as it is written to this machine's disk.
pub(crate) fn on_disk(segment: &str) -> Cow<'_, str> {
    if TAKES_ALL_NAMES { Cow::Borrowed(segment) } else { escaped(segment) }
}

/// The segment that is written to this machine's disk with this name.
pub(crate) fn from_disk(name: String) -> String {
    if TAKES_ALL_NAMES { name } else { unescaped(&name) }
}

fn escaped(segment: &str) -> Cow<'_, str> {
    let last = segment.len().saturating_sub(1);
    let is_refused = |at: usize, c: char| match c {
        '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\' | '/' => true,
        // Windows leaves a dot or a blank at the end out.
        '.' | ' ' => at == last,
        _ => at == 0 && is_device(segment),
    };
    if !segment.char_indices().any(|(at, c)| is_refused(at, c)) {
        return Cow::Borrowed(segment);
    }
    let written = |(at, c): (usize, char)| match is_refused(at, c) {
        true => char::from_u32(ESCAPE + u32::from(c)).unwrap_or(c),
        false => c,
    };
    segment.char_indices().map(written).collect()
}

fn unescaped(name: &str) -> String {
    let read = |c: char| match u32::from(c).checked_sub(ESCAPE) {
        Some(code @ 0x20..=0x7e) => char::from_u32(code).unwrap_or(c),
        _ => c,
    };
    name.chars().map(read).collect()
}

fn is_device(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let is_numbered = |device: &&str| {
        let number = stem.strip_prefix(*device).unwrap_or_default();
        number.chars().count() == 1
            && number.chars().all(|c| c.is_ascii_digit() || "\u{b9}\u{b2}\u{b3}".contains(c))
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_windows_does_not_take_is_written_in_another_way_and_read_back() {
        for name in [
            "Qwen3-0.6B-GGUF:Q4_K_M",
            "C:evil",
            "a<b>c\"d|e?f*g",
            "ends.",
            "CON",
            "nul.gguf",
            "Com1",
            "lpt\u{b9}.txt",
        ] {
            let written = escaped(name);
            assert_ne!(written, name);
            assert!(!written.contains(['<', '>', ':', '"', '|', '?', '*']), "{written}");
            assert!(!is_device(&written) && !written.ends_with('.'), "{written}");
            assert_eq!(unescaped(&written), name);
        }
        for name in ["Qwen3-8B.gguf", "console", "com", "com10", "\u{6a21}\u{578b}", ".hidden"] {
            assert_eq!(escaped(name), name);
            assert_eq!(unescaped(name), name);
        }
    }
}
