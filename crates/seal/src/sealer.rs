//! Payloads made into records that only the other end can open.

use std::fmt;

use ring::aead::{Aad, LessSafeKey};

use crate::{
    MAX_COUNTED_PIECE, MAX_PAYLOAD, MAX_RECORD, SealError,
    sealed::{LAST_COUNTER, TAG, nonce, part},
};

/// The outgoing direction of a link.
pub struct Sealer {
    key: LessSafeKey,
    next: u64,
}

impl Sealer {
    pub(crate) fn new(key: LessSafeKey) -> Self {
        Self { key, next: 0 }
    }

    /// Appends a payload to `out` as ordered records, ready for the stream: each is its length
    /// (u32, big-endian), then its ciphertext.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] over [`MAX_PAYLOAD`], [`SealError::Exhausted`]. Then `out` is
    /// unchanged, or the link is unusable.
    pub fn payload(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        check_payload(payload)?;
        let records = payload.len() / ORDERED_PIECE + 1;
        out.reserve(payload.len() + records * (LENGTH + 1 + TAG));
        let mut rest = payload;
        while let Some((piece, later)) = rest.split_at_checked(ORDERED_PIECE)
            && !later.is_empty()
        {
            self.record(true, piece, out)?;
            rest = later;
        }
        self.record(false, rest, out)
    }

    /// Appends one ordered record to `out`, including its length, for callers that cut payloads
    /// themselves: `more` means that the payload continues in the next record.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] when it does not fit into a record, [`SealError::Exhausted`].
    pub fn record(
        &mut self,
        more: bool,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        if plaintext.len() > ORDERED_PIECE {
            return Err(SealError::TooLarge { what: "a record", limit: ORDERED_PIECE });
        }
        // At most `MAX_RECORD`, which has two bytes.
        let length = (1 + plaintext.len() + TAG) as u32;
        out.extend_from_slice(&length.to_be_bytes());
        self.seal(if more { part::MORE } else { 0 }, plaintext, out)
    }

    /// A payload of at most [`MAX_COUNTED_PIECE`] bytes as one counted record: its number (u64,
    /// little-endian), then its ciphertext.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] for a longer one, [`SealError::Exhausted`].
    pub fn counted(&mut self, payload: &[u8]) -> Result<Vec<u8>, SealError> {
        if payload.len() > MAX_COUNTED_PIECE {
            return Err(SealError::TooLarge { what: "a record", limit: MAX_COUNTED_PIECE });
        }
        self.counted_piece(0, payload)
    }

    /// Seals a payload as counted records. They must be sent in this order, without other records
    /// of this link in between.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] over [`MAX_PAYLOAD`], [`SealError::Exhausted`].
    pub fn counted_pieces(&mut self, payload: &[u8]) -> Result<Vec<Vec<u8>>, SealError> {
        check_payload(payload)?;
        if payload.len() <= MAX_COUNTED_PIECE {
            return Ok(vec![self.counted_piece(0, payload)?]);
        }
        let last = (payload.len() - 1) / MAX_COUNTED_PIECE;
        let pieces = payload.chunks(MAX_COUNTED_PIECE).enumerate();
        pieces.map(|(index, piece)| self.counted_piece(kind(index, last), piece)).collect()
    }

    fn counted_piece(&mut self, kind: u8, piece: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut record = Vec::with_capacity(size_of::<u64>() + 1 + piece.len() + TAG);
        record.extend_from_slice(&self.next.to_le_bytes());
        self.seal(kind, piece, &mut record)?;
        Ok(record)
    }

    /// Appends the ciphertext of one record. The plaintext is copied once, to where it is sealed.
    fn seal(&mut self, kind: u8, plaintext: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        if self.next >= LAST_COUNTER {
            return Err(SealError::Exhausted);
        }
        let start = out.len();
        out.push(kind);
        out.extend_from_slice(plaintext);
        let nonce = nonce(self.next);
        self.next += 1;
        let sealed = self.key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut out[start..]);
        // Fails for a record of 256 GiB only.
        out.extend_from_slice(sealed.map_err(|_| SealError::Exhausted)?.as_ref());
        Ok(())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("next", &self.next).finish_non_exhaustive()
    }
}

fn check_payload(payload: &[u8]) -> Result<(), SealError> {
    match payload.len() > MAX_PAYLOAD {
        true => Err(SealError::TooLarge { what: "a payload", limit: MAX_PAYLOAD }),
        false => Ok(()),
    }
}

fn kind(index: usize, last: usize) -> u8 {
    let continues = if index > 0 { part::CONTINUES } else { 0 };
    let more = if index < last { part::MORE } else { 0 };
    continues | more
}

/// The length before an ordered record, in bytes.
const LENGTH: usize = 4;
/// The most of a payload that one ordered record carries, in bytes.
const ORDERED_PIECE: usize = MAX_RECORD - 1 - TAG;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::tests::link;

    impl Sealer {
        /// The number of the next record, as counted records begin.
        pub(crate) fn next_number(&self) -> [u8; 8] {
            self.next.to_le_bytes()
        }

        /// A record of any kind, also one that no sealer makes.
        pub(crate) fn seal_kind(&mut self, kind: u8, plaintext: &[u8], out: &mut Vec<u8>) {
            self.seal(kind, plaintext, out).unwrap();
        }
    }

    #[test]
    fn ordered_records_are_as_few_and_as_long_as_can_be() {
        let (mut sealer, _) = link();
        for (length, records) in [
            (0, vec![17]),
            (1, vec![18]),
            (ORDERED_PIECE, vec![MAX_RECORD]),
            (ORDERED_PIECE + 1, vec![MAX_RECORD, 18]),
            (2 * ORDERED_PIECE, vec![MAX_RECORD; 2]),
        ] {
            let mut out = vec![0xff];
            sealer.payload(&vec![7; length], &mut out).unwrap();
            let mut lengths = Vec::new();
            let mut rest = &out[1..];
            while let Some((head, later)) = rest.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*head) as usize;
                lengths.push(length);
                rest = &later[length..];
            }
            assert_eq!(lengths, records, "{length}");
        }
    }

    #[test]
    fn counted_records_are_numbered_and_at_most_60_kib() {
        let (mut sealer, _) = link();
        let numbers = |records: &[Vec<u8>]| -> Vec<u64> {
            records.iter().map(|it| u64::from_le_bytes(*it.first_chunk().unwrap())).collect()
        };
        assert_eq!(numbers(&[sealer.counted(b"one").unwrap()]), [0]);
        let records = sealer.counted_pieces(&vec![7; 2 * MAX_COUNTED_PIECE + 1]).unwrap();
        assert_eq!(numbers(&records), [1, 2, 3]);
        let lengths: Vec<_> = records.iter().map(|it| it.len() - 8 - 1 - 16).collect();
        assert_eq!(lengths, [MAX_COUNTED_PIECE, MAX_COUNTED_PIECE, 1]);
        assert_eq!(numbers(&sealer.counted_pieces(b"").unwrap()), [4]);
        let one = sealer.counted_pieces(&vec![7; MAX_COUNTED_PIECE]).unwrap();
        assert_eq!(numbers(&one), [5]);
    }

    #[test]
    fn a_payload_that_is_too_large_is_not_sent() {
        let (mut sealer, mut out) = (link().0, Vec::new());
        let long = vec![0; MAX_PAYLOAD + 1];
        let payload = SealError::TooLarge { what: "a payload", limit: MAX_PAYLOAD };
        assert_eq!(sealer.payload(&long, &mut out), Err(payload.clone()));
        assert_eq!(sealer.counted_pieces(&long), Err(payload));
        assert!(sealer.record(false, &long[..ORDERED_PIECE + 1], &mut out).is_err());
        assert!(sealer.counted(&long[..MAX_COUNTED_PIECE + 1]).is_err());
        assert!(out.is_empty());
    }

    #[test]
    fn keys_are_not_used_for_ever() {
        let (mut sealer, mut out) = (link().0, Vec::new());
        sealer.next = LAST_COUNTER - 1;
        assert!(sealer.counted(b"the last").is_ok());
        assert_eq!(sealer.counted(b"one more"), Err(SealError::Exhausted));
        assert_eq!(sealer.payload(b"one more", &mut out), Err(SealError::Exhausted));
    }
}
