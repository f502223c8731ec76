//! The numbers of the events of a response's stream.

use std::sync::LazyLock;

use memchr::memmem::Finder;

static KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"sequence_number\""));

/// The most bytes that a key with its number takes.
const LONGEST: usize = 48;

/// Reads the number of the last event of a stream that passes, split into pieces in any way.
#[derive(Debug, Clone, Default)]
pub struct SequenceReader {
    next: u64,
    /// The end of the bytes so far, which may be the beginning of a number.
    tail: Vec<u8>,
}

impl SequenceReader {
    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, piece: &[u8]) {
        self.tail.extend_from_slice(&piece[..piece.len().min(LONGEST)]);
        self.read_last(&self.tail.clone());
        if piece.len() > LONGEST {
            self.read_last(piece);
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - LONGEST..]);
        }
        self.tail.drain(..self.tail.len().saturating_sub(LONGEST));
    }

    /// The number of the event that comes next.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    fn read_last(&mut self, bytes: &[u8]) {
        // Inside a string the key's quotes have backslashes, so text does not match.
        let numbers =
            KEY.find_iter(bytes).filter_map(|at| number(&bytes[at + KEY.needle().len()..]));
        if let Some(last) = numbers.last() {
            self.next = last.saturating_add(1);
        }
    }
}

/// The number after a key. Only a number with something after it is complete.
fn number(rest: &[u8]) -> Option<u64> {
    let value = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = value.iter().position(|byte| !byte.is_ascii_digit())?;
    str::from_utf8(&value[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = "event: a\ndata: {\"type\":\"a\",\"sequence_number\":9,\"x\":\"\\\"sequence_number\\\":70\"}\n\ndata: {\"sequence_number\" : 10}\n\n";

    #[test]
    fn the_first_number_is_zero() {
        assert_eq!(SequenceReader::default().next_number(), 0);
    }

    proptest! {
        #[test]
        fn the_next_number_follows_the_last_however_the_stream_is_split(
            cuts in proptest::collection::vec(0usize..200, 0..9),
        ) {
            let bytes = STREAM.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut reader = SequenceReader::default();
            cuts.windows(2).for_each(|cut| reader.feed(&bytes[cut[0]..cut[1]]));
            prop_assert_eq!(reader.next_number(), 11);
        }
    }
}
