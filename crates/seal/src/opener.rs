//! Records made into payloads again.

use std::{fmt, mem};

use bytes::{Buf, Bytes};
use ring::aead::{Aad, LessSafeKey};

use crate::{
    MAX_PAYLOAD, MAX_RECORD, SealError,
    sealed::{LAST_COUNTER, TAG, nonce, part},
};

/// The incoming direction of a link.
///
/// It keeps at most one unfinished payload, of at most [`MAX_PAYLOAD`] bytes.
pub struct Opener {
    key: LessSafeKey,
    /// The number of the next record, or the lowest that it may have.
    next: u64,
    /// One unused byte, then the received part of a payload. Empty between payloads.
    gathered: Vec<u8>,
    /// The length of the last payload of several records: the next one is likely as long.
    likely: usize,
    broken: bool,
    refused: u64,
    lost: u64,
}

impl Opener {
    pub(crate) fn new(key: LessSafeKey) -> Self {
        let (gathered, next, likely) = (Vec::new(), 0, 0);
        Self { key, next, gathered, likely, broken: false, refused: 0, lost: 0 }
    }

    /// Opens the ciphertext of one ordered record (without its length). Returns the payload with
    /// its last record.
    ///
    /// # Errors
    /// [`SealError::Unauthentic`], [`SealError::Malformed`], [`SealError::TooLarge`],
    /// [`SealError::Exhausted`]; after any of them always [`SealError::Broken`]: the link has to
    /// end.
    pub fn record(&mut self, ciphertext: &[u8]) -> Result<Option<Bytes>, SealError> {
        if self.broken {
            return Err(SealError::Broken);
        }
        self.ordered(ciphertext).inspect_err(|_| {
            self.broken = true;
            self.refused += 1;
            self.forget();
        })
    }

    /// Opens one counted record (its number, then its ciphertext). Returns the payload with its
    /// last record. A refused record changes nothing: a relay may insert anything, and the link
    /// continues. A caller that sees many refusals should end the link.
    ///
    /// # Errors
    /// [`SealError::Replayed`], [`SealError::Unauthentic`], [`SealError::Malformed`];
    /// [`SealError::Incomplete`] and [`SealError::TooLarge`] for a lost payload.
    /// [`SealError::Exhausted`] when the link has to be opened again.
    pub fn counted(&mut self, record: &[u8]) -> Result<Option<Bytes>, SealError> {
        if self.refused >= MAX_REFUSED {
            return Err(SealError::Exhausted);
        }
        self.numbered(record).inspect_err(|_| self.refused += 1)
    }

    /// Whether a record was opened: the other end has this link's keys, and so made the handshake
    /// itself, just now, with its own key and the same passcode.
    pub fn is_proven(&self) -> bool {
        self.next > 0
    }

    /// How many records were refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The number of counted records that never arrived, as far as later ones show.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn ordered(&mut self, ciphertext: &[u8]) -> Result<Option<Bytes>, SealError> {
        if self.next >= LAST_COUNTER {
            return Err(SealError::Exhausted);
        }
        let kind = self.open(self.next, ciphertext)?;
        self.next += 1;
        if kind & part::CONTINUES != 0 {
            return Err(SealError::Malformed("a counted record where ordered ones are sent"));
        }
        check_kind(kind, ciphertext)?;
        self.gather(kind)
    }

    fn numbered(&mut self, record: &[u8]) -> Result<Option<Bytes>, SealError> {
        let Some((counter, ciphertext)) = record.split_first_chunk() else {
            return Err(SealError::Malformed("a record without its number"));
        };
        let (counter, expected) = (u64::from_le_bytes(*counter), self.next);
        if counter < expected {
            return Err(SealError::Replayed { counter, expected });
        }
        if counter >= LAST_COUNTER {
            return Err(SealError::Malformed("a record with a number that nobody reaches"));
        }
        let before = self.gathered.len();
        let kind = self.open(counter, ciphertext)?;
        self.next = counter + 1;
        self.lost += counter - expected;
        check_kind(kind, ciphertext)
            .and_then(|()| self.join(kind, before, counter == expected))
            .and_then(|()| self.gather(kind))
            .inspect_err(|_| self.forget())
    }

    /// Checks that a payload consists of all of its own pieces and no others. `before` is the
    /// length gathered before this piece; `next` is whether it directly follows the last one.
    fn join(&mut self, kind: u8, before: usize, next: bool) -> Result<(), SealError> {
        let begins = kind & part::CONTINUES == 0;
        if begins && before > 0 {
            // The rest of the earlier bytes is lost. Their last byte takes the place of the byte that
            // means nothing.
            self.gathered.drain(..before - 1);
        } else if !begins && (before == 0 || !next) {
            return Err(SealError::Incomplete);
        }
        Ok(())
    }

    /// Opens a record behind the gathered part, in place, and returns its first byte. A refused
    /// record leaves everything unchanged.
    ///
    /// The first byte of the plaintext would lie between two pieces. So the piece is opened one
    /// byte earlier, over the last gathered byte, which is then restored.
    fn open(&mut self, counter: u64, ciphertext: &[u8]) -> Result<u8, SealError> {
        if ciphertext.len() <= TAG || ciphertext.len() > MAX_RECORD {
            return Err(SealError::Malformed("a record of a length that none has"));
        }
        let last = self.gathered.pop();
        let at = self.gathered.len();
        self.gathered.extend_from_slice(ciphertext);
        let opened = self.key.open_in_place(nonce(counter), Aad::empty(), &mut self.gathered[at..]);
        let kind = opened.as_ref().ok().and_then(|plaintext| plaintext.first().copied());
        let length = at + opened.map_or(0, |plaintext| plaintext.len());
        self.gathered.truncate(length.max(at));
        match (kind, last) {
            (Some(_), Some(last)) => self.gathered[at] = last,
            (None, Some(last)) => self.gathered.push(last),
            (_, None) => {}
        }
        kind.ok_or(SealError::Unauthentic)
    }

    /// The payload, if the piece just opened is its last.
    fn gather(&mut self, kind: u8) -> Result<Option<Bytes>, SealError> {
        if self.gathered.len() - 1 > MAX_PAYLOAD {
            return Err(SealError::TooLarge { what: "a payload", limit: MAX_PAYLOAD });
        }
        if kind & part::MORE != 0 {
            let likely = self.likely.saturating_sub(self.gathered.len());
            self.gathered.reserve(likely);
            return Ok(None);
        }
        if self.gathered.len() > MAX_RECORD {
            self.likely = (self.gathered.len() + TAG).min(MOST_LIKELY);
        }
        let mut payload = Bytes::from(mem::take(&mut self.gathered));
        payload.advance(1);
        Ok(Some(payload))
    }

    fn forget(&mut self) {
        self.gathered = Vec::new();
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("next", &self.next).finish_non_exhaustive()
    }
}

/// Refuses records that no sealer creates. `ciphertext` is the source of the record.
fn check_kind(kind: u8, ciphertext: &[u8]) -> Result<(), SealError> {
    if kind & !(part::MORE | part::CONTINUES) != 0 {
        return Err(SealError::Malformed("a record of an unknown kind"));
    }
    if kind & part::MORE != 0 && ciphertext.len() == 1 + TAG {
        return Err(SealError::Malformed("an empty record that is not the last of its payload"));
    }
    Ok(())
}

/// Memory taken ahead of what arrives, at most, in bytes.
const MOST_LIKELY: usize = 2 * 1024 * 1024;
/// The most forgeries that may be tried on one key (RFC 9001 has 2^36 for this cipher).
const MAX_REFUSED: u64 = 1 << 32;

#[cfg(test)]
mod tests;
