//! Bytes in messages, as base64.

use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};

/// Why text cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBytes {
    /// Not base64.
    #[error("`data` is not base64 ({0}); use the standard alphabet, with padding")]
    NotBase64(#[from] DecodeError),
    /// There are too many bytes.
    #[error("`data` holds more than {max} bytes")]
    TooMany {
        /// How many are allowed.
        max: usize,
    },
}

/// The bytes as text, in the standard alphabet and padded.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes that text encodes, at most `max`. Longer text is refused before memory is allocated
/// for it.
///
/// # Errors
/// [`BadBytes`].
pub fn decode(text: &str, max: usize) -> Result<Vec<u8>, BadBytes> {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').take(2).count();
    let length = text.len() / 4 * 3;
    if length.saturating_sub(padding) > max {
        return Err(BadBytes::TooMany { max });
    }
    Ok(STANDARD.decode(text)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn too_many_bytes_are_refused_and_as_many_as_may_be_are_not() {
        for length in 0..10 {
            let text = encode(&vec![7; length]);
            assert_eq!(decode(&text, length).unwrap().len(), length);
            if let Some(max) = length.checked_sub(1) {
                assert_eq!(decode(&text, max), Err(BadBytes::TooMany { max }));
            }
        }
    }

    #[test]
    fn text_that_is_not_base64_is_refused() {
        for text in ["a", "ab=", "@@@@", "YQ", "YQ==YQ=="] {
            assert!(matches!(decode(text, 100), Err(BadBytes::NotBase64(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes), bytes.len()), Ok(bytes));
        }
    }
}
