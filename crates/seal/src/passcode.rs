//! The shared secret of a mesh's nodes.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base::Secret;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A key derived from a secret that both ends of a link have, such as a mesh's passcode. A handshake
/// with it proves the secret without sending it or a hash of it.
///
/// A dialled node sends an answer that opens only with the right passcode. So anyone who can dial
/// may afterwards try passcodes on that answer, each at the cost of [`PasscodeKey::derive`]. A
/// short passcode does not withstand that.
#[derive(Clone)]
pub struct PasscodeKey(Zeroizing<[u8; 32]>);

impl PasscodeKey {
    /// Argon2id of the passcode with 64 MiB, three passes, one lane and a fixed salt. Takes about a
    /// tenth of a second and 64 MiB: once at start, and not on a runtime's thread. Of a passcode
    /// over 1 MiB the beginning counts.
    pub fn derive(passcode: &Secret) -> Self {
        Self::stretched(passcode, SALT)
    }

    /// As [`PasscodeKey::derive`], with a salt for another use.
    pub(crate) fn stretched(passcode: &Secret, salt: &[u8; SALT_LENGTH]) -> Self {
        let passcode = passcode.expose().as_bytes();
        let passcode = &passcode[..passcode.len().min(1 << 20)];
        let mut key = Zeroizing::new([0; 32]);
        argon2_into(passcode, salt, key.as_mut_slice());
        Self(key)
    }

    /// The hash of random bytes, which need no costly derivation.
    pub(crate) fn hashed(secret: &[u8; 16]) -> Self {
        Self(Zeroizing::new(Sha256::digest(secret).into()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for PasscodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The hash of a passcode as stock peers send it in `hello`: SHA-256 of its text, in lower-case
/// hex. `None` without a passcode. Anyone who sees the hash can try passcodes at will.
pub fn stock_hash(passcode: &str) -> Option<String> {
    (!passcode.is_empty()).then(|| hex::encode(Sha256::digest(passcode)))
}

/// Whether two hashes of [`stock_hash`] are equal, in a time that does not show where they differ.
/// Case does not matter.
pub fn hashes_equal(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(str::to_ascii_lowercase);
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[expect(clippy::expect_used, reason = "every length is in Argon2's range: see each")]
fn argon2_into(passcode: &[u8], salt: &[u8; SALT_LENGTH], key: &mut [u8]) {
    let cost = Params::new(MEMORY_KIB, PASSES, LANES, Some(key.len()));
    let cost = cost.expect("constants within the ranges of RFC 9106");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, cost)
        .hash_password_into(passcode, salt, key)
        .expect("a passcode of at most 1 MiB, a salt of 22 bytes, a key of 32");
}

/// How long every salt is, in bytes.
pub(crate) const SALT_LENGTH: usize = 22;
const SALT: &[u8; SALT_LENGTH] = b"warren.mesh.passcode.1";
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_follows_from_its_passcode_and_from_nothing_else() {
        let keys = ["swift eagle", "swift eagle", "swift eagles", ""]
            .map(|text| PasscodeKey::derive(&Secret::from(text)));
        assert_eq!(keys[0].as_bytes(), keys[1].as_bytes());
        assert_ne!(keys[0].as_bytes(), keys[2].as_bytes());
        assert_ne!(keys[0].as_bytes(), keys[3].as_bytes());
    }

    #[test]
    fn a_key_does_not_show_itself() {
        let key = PasscodeKey(Zeroizing::new([7; 32]));
        assert_eq!(format!("{key:?}"), "[redacted]");
    }

    #[test]
    fn the_stock_hash_is_sha_256_in_hex_and_nothing_without_a_passcode() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(stock_hash("abc").as_deref(), Some(expected));
        assert_eq!(stock_hash(""), None);
    }

    #[test]
    fn hashes_are_compared_whole_and_without_case() {
        assert!(hashes_equal("ab12", "AB12"));
        assert!(!hashes_equal("ab12", "ab13"));
        assert!(!hashes_equal("ab12", "ab1"));
        assert!(!hashes_equal("ab12", ""));
    }
}
