//! Decodes bytes into valid UTF-8, whatever the bytes are and wherever they are cut.

use bytes::{Bytes, BytesMut};
use simdutf8::compat::from_utf8;

/// The replacement for bytes that are not text: U+FFFD.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Decodes a stream of bytes into text. All returned text, joined, equals the result of
/// [`String::from_utf8_lossy`] for all bytes, joined.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a character whose end has not arrived yet: at most three bytes.
    carry: Bytes,
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the next bytes. The text is not copied if the bytes are valid and no earlier
    /// character was cut. It is empty if no character ends in the bytes, and at most three times as
    /// long as the bytes, plus three bytes.
    pub fn push(&mut self, bytes: Bytes) -> Bytes {
        let bytes = self.joined(bytes);
        match from_utf8(&bytes) {
            Ok(_) => bytes,
            Err(error) if error.error_len().is_none() => self.cut(bytes, error.valid_up_to()),
            Err(_) => self.repaired(&bytes),
        }
    }

    /// Drops the unfinished character, and returns its replacement; `None` if there is no unfinished
    /// character. Call this at the end of the stream, or when the character's end has not arrived for
    /// a while.
    pub fn flush(&mut self) -> Option<Bytes> {
        let carry = std::mem::take(&mut self.carry);
        (!carry.is_empty()).then(|| Bytes::from_static(REPLACEMENT))
    }

    /// Whether a character has begun and not ended.
    pub fn is_pending(&self) -> bool {
        !self.carry.is_empty()
    }

    /// The bytes of a character that has begun and not ended.
    pub fn pending(&self) -> usize {
        self.carry.len()
    }

    /// The carried bytes, followed by these.
    fn joined(&mut self, bytes: Bytes) -> Bytes {
        // The usual case copies nothing.
        if self.carry.is_empty() {
            return bytes;
        }
        let carry = std::mem::take(&mut self.carry);
        let mut joined = BytesMut::with_capacity(carry.len() + bytes.len());
        joined.extend_from_slice(&carry);
        joined.extend_from_slice(&bytes);
        joined.freeze()
    }

    /// The bytes before the unfinished character at `at`. The unfinished character is copied, so
    /// that it does not keep the buffer alive.
    fn cut(&mut self, mut bytes: Bytes, at: usize) -> Bytes {
        self.carry = Bytes::copy_from_slice(&bytes[at..]);
        bytes.truncate(at);
        bytes
    }

    fn repaired(&mut self, bytes: &[u8]) -> Bytes {
        let mut text = BytesMut::with_capacity(bytes.len() + bytes.len() / 8);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.extend_from_slice(chunk.valid().as_bytes());
            if chunks.peek().is_none() && is_begun(chunk.invalid()) {
                self.carry = Bytes::copy_from_slice(chunk.invalid());
            } else if !chunk.invalid().is_empty() {
                text.extend_from_slice(REPLACEMENT);
            }
        }
        text.freeze()
    }
}

/// Whether these bytes are the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn bytes(bytes: &[u8]) -> Bytes {
        Bytes::copy_from_slice(bytes)
    }

    #[test]
    fn valid_text_is_not_copied() {
        let mut decoder = Decoder::new();
        let text = bytes("grüße".as_bytes());
        assert_eq!(decoder.push(text.clone()).as_ptr(), text.as_ptr());
        let cut = text.slice(..3);
        let pushed = decoder.push(cut.clone());
        assert_eq!((&pushed[..], pushed.as_ptr()), (&b"gr"[..], cut.as_ptr()));
    }

    #[test]
    fn a_character_cut_anywhere_comes_whole() {
        let mut decoder = Decoder::new();
        for byte in "🦀".bytes().take(3) {
            assert_eq!(decoder.push(bytes(&[byte])), "");
            assert!(decoder.is_pending());
        }
        assert_eq!(decoder.push(bytes(b"\x80!")), "🦀!");
        assert!(!decoder.is_pending());
        assert_eq!(decoder.flush(), None);
    }

    #[test]
    fn a_character_that_never_ends_is_replaced_when_flushed() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.push(bytes(b"a\xf0\x9f")), "a");
        assert_eq!(decoder.flush().unwrap(), "\u{fffd}");
        assert!(!decoder.is_pending());
        assert_eq!(decoder.push(bytes(b"b")), "b");
    }

    #[test]
    fn an_empty_text_stays_empty() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.push(Bytes::new()), "");
        decoder.push(bytes(b"\xc3"));
        assert_eq!(decoder.push(Bytes::new()), "");
        assert!(decoder.is_pending());
    }

    #[test]
    fn a_carried_beginning_keeps_no_buffer_alive() {
        let mut decoder = Decoder::new();
        let buffer = bytes(b"abc\xc3");
        drop(decoder.push(buffer.clone()));
        assert!(decoder.is_pending() && buffer.is_unique());
    }

    /// Bytes that are often almost valid text.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            "\\PC{0,3}".prop_map(String::into_bytes),
            vec(any::<u8>(), 0..3),
            vec(
                prop::sample::select(
                    b"\x80\xbf\xc0\xc2\xe0\xa0\x9f\xed\xf0\x90\xf4\x8f\xff".as_slice()
                ),
                0..5
            ),
        ];
        vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn split_anywhere_it_is_what_the_whole_is(
            stream in stream(),
            cuts in vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let (mut decoder, mut text) = (Decoder::new(), Vec::new());
            for pair in cuts.windows(2) {
                let piece = &stream[pair[0]..pair[1]];
                let pushed = decoder.push(bytes(piece));
                prop_assert!(std::str::from_utf8(&pushed).is_ok());
                prop_assert!(pushed.len() <= 3 * piece.len() + 3);
                prop_assert!(decoder.carry.len() <= 3);
                text.extend_from_slice(&pushed);
            }
            text.extend(decoder.flush().unwrap_or_default());
            prop_assert_eq!(String::from_utf8(text).unwrap(), String::from_utf8_lossy(&stream));
        }
    }
}
