//! Tokens and ids that this server creates; of a token it stores only the SHA-256.

use base::Secret;
use rand::RngExt;
use sha2::{Digest, Sha256};
use store::KeyDigest;
use subtle::ConstantTimeEq;

/// The prefix of host tokens.
pub(crate) const HOST: &str = "wh_";

/// The prefix of session tokens of participants.
pub(crate) const SESSION: &str = "wp_";

/// A new token: `prefix`, then 256 random bits in hex.
pub(crate) fn new_token(prefix: &str) -> Secret {
    let bits: [u8; 32] = rand::rng().random();
    Secret::from(format!("{prefix}{}", hex::encode(bits)))
}

/// The SHA-256 of a token.
pub(crate) fn digest(text: &str) -> KeyDigest {
    KeyDigest(Sha256::digest(text.as_bytes()).into())
}

/// Whether a text is the token of this digest. The time depends only on the length of the text.
pub(crate) fn is_token(shown: Option<&str>, stored: &KeyDigest) -> bool {
    shown.is_some_and(|shown| are_equal(&digest(shown), stored))
}

/// Compares in constant time.
pub(crate) fn are_equal(one: &KeyDigest, other: &KeyDigest) -> bool {
    one.0.ct_eq(&other.0).into()
}

/// A random UUID, version 4.
pub fn uuid() -> String {
    let bits: u128 = rand::rng().random();
    let versioned = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{versioned:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

/// A random room id in the form of stock servers: 21 characters, 126 bits.
pub(crate) fn room_id() -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    let mut random = rand::rng();
    (0..21).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_digest_alone() {
        let (one, other) = (new_token(HOST), new_token(HOST));
        let stored = digest(one.expose());
        assert!(one.expose().starts_with("wh_") && one.expose().len() == 67);
        assert!(is_token(Some(one.expose()), &stored));
        assert!(!is_token(Some(other.expose()), &stored) && !is_token(None, &stored));
    }

    #[test]
    fn ids_have_the_form_of_stock_ones() {
        let (id, other) = (uuid(), uuid());
        assert_ne!(id, other);
        let lengths: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(id.as_bytes()[14], b'4');
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        assert_eq!(room_id().len(), 21);
        assert_ne!(room_id(), room_id());
    }
}
