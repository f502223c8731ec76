//! The link after the handshake, as its two directions.
//!
//! A payload is cut into records of at most 65,535 bytes, each sealed separately. A record's
//! plaintext begins with a byte that marks its part of the payload. There are two ways to send
//! records, and a link uses only one of them:
//!
//! - *ordered*, where nothing can get lost (TCP): a record is its length and its ciphertext, and
//!   its number is its position in the stream. [`Sealer::payload`], [`Opener::record`].
//! - *counted*, through an intermediary (a relay): a record is its number and its ciphertext.
//!   Replayed records are refused, lost ones are noticed, and a payload never mixes parts of two.
//!   [`Sealer::counted_pieces`], [`Opener::counted`].

use std::fmt;

use ring::aead::{CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::{Opener, SealError, Sealer};

/// The longest payload that is sent or taken, in bytes.
pub const MAX_PAYLOAD: usize = 16 * 1024 * 1024;
/// The longest ciphertext of a record, in bytes: Noise has no longer message.
pub const MAX_RECORD: usize = 65_535;
/// The most of a payload that one counted record carries, in bytes.
pub const MAX_COUNTED_PIECE: usize = 60 * 1024;

/// A link that only its two ends can read.
///
/// Its initiator knows the other end. Its responder knows that the other end is who it expected
/// once it has opened the first record ([`Opener::is_proven`]), and not before: the handshake's first
/// message may have been recorded, and does not prove a passcode.
pub struct Sealed {
    sealer: Sealer,
    opener: Opener,
}

impl Sealed {
    /// The two independent directions: sending and receiving.
    pub fn split(self) -> (Sealer, Opener) {
        (self.sealer, self.opener)
    }

    /// With a key for each direction, as a handshake gives them.
    pub(crate) fn new(
        outgoing: &Zeroizing<[u8; 32]>,
        incoming: &Zeroizing<[u8; 32]>,
    ) -> Result<Self, SealError> {
        Ok(Self { sealer: Sealer::new(key(outgoing)?), opener: Opener::new(key(incoming)?) })
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed")
    }
}

fn key(bytes: &Zeroizing<[u8; 32]>) -> Result<LessSafeKey, SealError> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, bytes.as_slice());
    // Fails for other lengths only, which the type rules out.
    key.map(LessSafeKey::new).map_err(|_| SealError::Malformed("a key of another length"))
}

/// How Noise makes a nonce of a record's number for ChaChaPoly: four zero bytes, then the number,
/// little-endian.
pub(crate) fn nonce(counter: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The values of a record's first plaintext byte.
pub(crate) mod part {
    /// More of the payload follows.
    pub(crate) const MORE: u8 = 1;
    /// The payload began in an earlier record. Used only for counted records: the order of the
    /// others shows it.
    pub(crate) const CONTINUES: u8 = 2;
}

/// The bytes that sealing adds to a record's plaintext: the tag, after the ciphertext.
pub(crate) const TAG: usize = 16;
/// The most records of one key. No link gets there; a greater counter is false.
pub(crate) const LAST_COUNTER: u64 = 1 << 48;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The sealer of one end, and the opener of the other.
    pub(crate) fn link() -> (Sealer, Opener) {
        let keys = [1, 2].map(|byte| Zeroizing::new([byte; 32]));
        let one = Sealed::new(&keys[0], &keys[1]).unwrap();
        let other = Sealed::new(&keys[1], &keys[0]).unwrap();
        (one.split().0, other.split().1)
    }

    #[test]
    fn the_directions_have_keys_of_their_own() {
        let keys = [1, 2].map(|byte| Zeroizing::new([byte; 32]));
        let (mut sealer, mut opener) = Sealed::new(&keys[0], &keys[1]).unwrap().split();
        let record = sealer.counted(b"to the other end").unwrap();
        assert_eq!(opener.counted(&record), Err(SealError::Unauthentic));
    }

    #[test]
    fn both_directions_may_live_in_threads_of_their_own() {
        fn assert_send<T: Send>() {}
        assert_send::<Sealer>();
        assert_send::<Opener>();
    }
}
