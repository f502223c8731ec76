//! Which certificate is a server's, as a short digest.

use std::{fmt, str::FromStr};

/// The first 128 bits of the SHA-256 of a certificate's public key (its `SubjectPublicKeyInfo` as DER). Finding
/// another key with the same bits takes 2^128 attempts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; Fingerprint::BYTES]);

/// A text that is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has {} hexadecimal digits", 2 * Fingerprint::BYTES)]
pub struct NotAFingerprint;

impl Fingerprint {
    /// How many bytes it has.
    pub const BYTES: usize = 16;

    /// The fingerprint with these bytes.
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The fingerprint of a key whose SHA-256 this is.
    pub fn of_sha256(digest: &[u8; 32]) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&digest[..Self::BYTES]);
        Self(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; Self::BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| NotAFingerprint)?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = NotAFingerprint;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_beginning_of_a_digest_and_survives_as_text() {
        let mut digest = [7; 32];
        digest[31] = 0;
        let fingerprint = Fingerprint::of_sha256(&digest);
        assert_eq!(fingerprint.to_string(), "07".repeat(16));
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        for bad in ["", "07", "zz07070707070707070707070707070707"] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(NotAFingerprint));
        }
    }
}
