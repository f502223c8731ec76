//! Bytes as text, cut only between characters.

use std::borrow::Cow;

/// Joins pieces of text that were cut anywhere. An incomplete character waits for its rest. Bytes
/// that are not UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Utf8Joiner {
    /// The beginning of a character, three bytes at most.
    tail: Vec<u8>,
}

impl Utf8Joiner {
    /// The text of a piece up to its last complete character.
    pub(super) fn push(&mut self, piece: &[u8]) -> String {
        let bytes = if self.tail.is_empty() {
            Cow::Borrowed(piece)
        } else {
            self.tail.extend_from_slice(piece);
            Cow::Owned(std::mem::take(&mut self.tail))
        };
        let (text, tail) = bytes.split_at(bytes.len() - unfinished(&bytes));
        self.tail.extend_from_slice(tail);
        String::from_utf8_lossy(text).into_owned()
    }

    /// The incomplete rest at the end.
    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.tail)).into_owned()
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    let last = bytes[start..].iter().rposition(|&byte| byte >= 0xc0);
    let Some(last) = last else { return 0 };
    let tail = &bytes[start + last..];
    match str::from_utf8(tail) {
        Err(error) if error.error_len().is_none() => tail.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(pieces: &[&[u8]]) -> Vec<String> {
        let mut joiner = Utf8Joiner::default();
        let mut texts: Vec<_> = pieces.iter().map(|piece| joiner.push(piece)).collect();
        texts.push(joiner.finish());
        texts
    }

    #[test]
    fn a_character_cut_in_the_middle_waits_for_its_rest() {
        assert_eq!(joined(&[b"a\xf0\x9f", b"\x92", b"\xa1b"]), ["a", "", "💡b", ""]);
        assert_eq!(joined(&["é".as_bytes(), b"x"]), ["é", "x", ""]);
    }

    #[test]
    fn invalid_text_is_replaced_and_delays_nothing() {
        assert_eq!(joined(&[b"a\xff\xfe", b"b"]), ["a\u{fffd}\u{fffd}", "b", ""]);
        assert_eq!(joined(&[b"a\xe2\x82"]), ["a", "\u{fffd}"]);
        assert_eq!(joined(&[b"\x80\x80\x80\x80"]).concat(), "\u{fffd}".repeat(4));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_text(
            bytes in prop_oneof![any::<Vec<u8>>(), any::<String>().prop_map(String::into_bytes)],
            size in 1..6usize,
        ) {
            let pieces: Vec<_> = bytes.chunks(size).collect();
            prop_assert_eq!(joined(&pieces).concat(), String::from_utf8_lossy(&bytes));
        }
    }
}
