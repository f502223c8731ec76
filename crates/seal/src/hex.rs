//! Bytes as hex digits.

use std::fmt::Write;

/// Two lower-case hex digits a byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of exactly `2 * N` hex digits, of either case.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(text: u8) -> Option<u8> {
    char::from(text).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_trip_in_either_case() {
        assert_eq!(encode(&[0, 0x1f, 0xa0]), "001fa0");
        assert_eq!(decode("001fa0"), Some([0, 0x1f, 0xa0]));
        assert_eq!(decode("001FA0"), Some([0, 0x1f, 0xa0]));
    }

    #[test]
    fn nothing_else_is_hex() {
        for text in ["", "0", "001fa", "001fa00", "00 fa0", "+01fa0", "00ga00", "é1fa"] {
            assert_eq!(decode::<3>(text), None, "{text}");
        }
    }
}
