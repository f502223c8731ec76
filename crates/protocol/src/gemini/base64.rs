//! Bytes as text. Google's clients write both alphabets of base64, with or without padding.

use std::borrow::Cow;

use base64::Engine;

use crate::lenient_base64::LENIENT;

/// Bytes in the standard alphabet, padded.
pub fn encode(bytes: &[u8]) -> String {
    LENIENT.encode(bytes)
}

/// The bytes of a text in either alphabet; `None` when it is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(&*standard(text)?).ok()
}

/// The same text in the standard alphabet and padded; `None` when it is not base64.
pub fn standard(text: &str) -> Option<Cow<'_, str>> {
    let bare = text.trim_end_matches('=');
    let is_one =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    if !bare.bytes().all(is_one) || bare.len() % 4 == 1 {
        return None;
    }
    let is_padded = text.len().is_multiple_of(4) && text.len() - bare.len() < 3;
    if is_padded && !bare.contains(['-', '_']) {
        return Some(Cow::Borrowed(text));
    }
    let mut standard = bare.replace('-', "+").replace('_', "/");
    standard.extend(std::iter::repeat_n('=', bare.len().next_multiple_of(4) - bare.len()));
    Some(Cow::Owned(standard))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn either_alphabet_becomes_the_standard_one() {
        for (given, standard_one) in [
            ("", Some("")),
            ("+/8=", Some("+/8=")),
            ("-_8=", Some("+/8=")),
            ("-_8", Some("+/8=")),
            ("AAAA", Some("AAAA")),
            ("A", None),
            ("AA A", None),
            ("not base64!", None),
            ("=AAA", None),
        ] {
            assert_eq!(standard(given).as_deref(), standard_one, "{given}");
        }
        assert_eq!(decode("-_8"), Some(vec![0xfb, 0xff]));
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
