//! The output of a session: numbered chunks of text, of which the newest are kept.
//!
//! Each session has one log, and the log has the only copy of the output: a viewer is a position in
//! it ([`crate::terminal::viewer`]).
//!
//! - [`history`]: the output before a number, from the log and from the disk
//! - [`record`]: the format of chunks on disk
//! - [`retention`]: how much output is kept on disk

pub mod history;
pub mod record;
pub mod retention;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

pub use history::{Gather, History};
pub use retention::Retention;

/// The default size of a log, in bytes.
pub const DEFAULT_BOUND: usize = 2 * 1024 * 1024;
/// The longest chunk, in bytes. Longer text is split into several chunks.
pub const MAX_CHUNK: usize = 1024 * 1024;
/// When output may have been lost before it reached the disk, numbering skips this many numbers
/// after the last one on disk. A client may have seen the lost numbers, and no number may stand for
/// two different chunks.
pub const RESTART_GAP: u64 = 1 << 20;
/// The largest number that a log resumes at or that a record may have: every JSON reader can still
/// hold it exactly.
pub const MAX_SEQ: u64 = (1 << 53) - 1;

/// The memory that a chunk takes beside its text, in bytes.
const OVERHEAD: usize = 64;
/// Chunks shorter than this are copied into a shared block. Otherwise each would keep alive the
/// whole buffer that it was read into.
const SMALL: usize = 16 * 1024;
/// The sizes of the smallest and the largest block, in bytes.
const BLOCK: (usize, usize) = (4 * 1024, 64 * 1024);

/// A piece of a session's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The chunk's number: one more than that of the chunk before it.
    pub seq: u64,
    /// Valid UTF-8, never empty.
    pub text: Bytes,
}

/// The requested output is not kept any more, or was never there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the output after {after} is not here: of this session it is kept from {first} to {last}; \
     ask for a snapshot"
)]
pub struct OutputGone {
    /// The number after which output was requested.
    pub after: u64,
    /// The number of the first chunk that is kept; if there is none, of the next chunk.
    pub first: u64,
    /// The number that was assigned last.
    pub last: u64,
}

/// The newest output of a session, within a bound.
#[derive(Debug)]
pub struct Log {
    bound: usize,
    /// The chunks, each with the number of bytes of output up to its end.
    chunks: VecDeque<(Bytes, u64)>,
    /// The number of the first chunk that is kept; if there is none, of the next chunk.
    first: u64,
    /// The number of bytes of output before the first chunk that is kept.
    start: u64,
    /// The block into which small chunks are copied.
    block: BytesMut,
}

impl Log {
    /// An empty log that keeps up to about `bound` bytes: the text, and the memory that its chunks
    /// take beside it. The newest chunk is kept even if it is larger than the bound.
    pub fn new(bound: usize) -> Self {
        Self { bound, chunks: VecDeque::new(), first: 1, start: 0, block: BytesMut::new() }
    }

    /// Drops all chunks. The next chunk gets the number `next_seq`, at most [`MAX_SEQ`]; if that
    /// number was already assigned, the chunk gets the number after the last assigned one. See
    /// [`RESTART_GAP`].
    pub fn resume_at(&mut self, next_seq: u64) {
        self.first = next_seq.min(MAX_SEQ).max(self.last_seq() + 1);
        // The count of bytes goes on, so that `bytes_after` stays right for positions before this.
        self.start = self.end();
        self.chunks.clear();
    }

    /// Appends text, which must be valid UTF-8, and returns the number of its chunk. Text longer
    /// than [`MAX_CHUNK`] becomes several chunks, and the number is that of the last one. Empty
    /// text becomes no chunk.
    pub fn append(&mut self, mut text: Bytes) -> u64 {
        while text.len() > MAX_CHUNK {
            let piece = text.split_to(boundary(&text, MAX_CHUNK));
            self.push(piece);
        }
        if !text.is_empty() {
            self.push(text);
        }
        self.last_seq()
    }

    /// The number of the first chunk that is kept; if there is none, of the next chunk.
    pub const fn first_seq(&self) -> u64 {
        self.first
    }

    /// The number that was assigned last; 0 before the first chunk.
    pub fn last_seq(&self) -> u64 {
        self.first + self.chunks.len() as u64 - 1
    }

    /// All chunks after a number.
    ///
    /// # Errors
    /// When not all of them are kept, or the number was never assigned.
    pub fn after(&self, seq: u64) -> Result<Chunks<'_>, OutputGone> {
        let (first, last) = (self.first, self.last_seq());
        if seq.saturating_add(1) < first || seq > last {
            return Err(OutputGone { after: seq, first, last });
        }
        Ok(Chunks { log: self, next: seq + 1, end: last + 1 })
    }

    /// All chunks that are kept.
    pub fn all(&self) -> Chunks<'_> {
        Chunks { log: self, next: self.first, end: self.last_seq() + 1 }
    }

    /// The number of bytes after a number, as far as they are kept.
    pub fn bytes_after(&self, seq: u64) -> u64 {
        self.end() - self.end_of(seq)
    }

    /// The number of bytes that the log takes: the text, and the memory of its chunks beside it.
    pub fn size(&self) -> usize {
        (self.end() - self.start) as usize + self.chunks.len() * OVERHEAD
    }

    fn push(&mut self, text: Bytes) {
        let text = if text.len() < SMALL { self.packed(&text) } else { text };
        let end = self.end() + text.len() as u64;
        self.chunks.push_back((text, end));
        // The newest chunk stays, whatever its size: viewers must get it.
        while self.size() > self.bound && self.chunks.len() > 1 {
            self.drop_oldest();
        }
    }

    fn packed(&mut self, text: &[u8]) -> Bytes {
        if self.block.capacity() < text.len() {
            // As large as the log is so far: a quiet session needs no large block.
            let wanted = self.size().clamp(BLOCK.0, BLOCK.1);
            self.block = BytesMut::with_capacity(wanted.max(text.len()));
        }
        self.block.extend_from_slice(text);
        self.block.split().freeze()
    }

    fn drop_oldest(&mut self) {
        if let Some((_, end)) = self.chunks.pop_front() {
            self.first += 1;
            self.start = end;
        }
    }

    /// The number of bytes of output so far.
    fn end(&self) -> u64 {
        self.chunks.back().map_or(self.start, |(_, end)| *end)
    }

    /// The number of bytes of output up to the end of a chunk. If that chunk is not kept, the
    /// nearest end that is known.
    fn end_of(&self, seq: u64) -> u64 {
        match seq.checked_sub(self.first) {
            None => self.start,
            Some(index) => usize::try_from(index)
                .ok()
                .and_then(|index| self.chunks.get(index))
                .map_or(self.end(), |(_, end)| *end),
        }
    }

    fn get(&self, seq: u64) -> Option<Chunk> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.chunks.get(index).map(|(text, _)| Chunk { seq, text: text.clone() })
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new(DEFAULT_BOUND)
    }
}

/// Chunks of a log, in order. They share the log's copy of the text.
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    log: &'a Log,
    next: u64,
    end: u64,
}

impl Chunks<'_> {
    /// These chunks, cut off after this many bytes in total, but never before the first chunk.
    #[must_use]
    pub fn up_to(mut self, bytes: u64) -> Self {
        let limit = self.log.end_of(self.next - 1) + bytes;
        let fitting = self.log.chunks.partition_point(|(_, end)| *end <= limit) as u64;
        self.end = (self.log.first + fitting).max(self.next + 1).min(self.end);
        self
    }

    /// The number of the last chunk; `None` if there is no chunk.
    pub fn last_seq(&self) -> Option<u64> {
        (self.next < self.end).then(|| self.end - 1)
    }
}

impl Iterator for Chunks<'_> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let seq = self.last_seq().map(|_| self.next)?;
        self.next += 1;
        self.log.get(seq)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl DoubleEndedIterator for Chunks<'_> {
    fn next_back(&mut self) -> Option<Chunk> {
        self.end = self.last_seq()?;
        self.log.get(self.end)
    }
}

impl ExactSizeIterator for Chunks<'_> {}

/// The last position up to `most` that is a character's beginning.
fn boundary(text: &[u8], most: usize) -> usize {
    let is_start = |at: &usize| text[*at] & 0b1100_0000 != 0b1000_0000;
    // A character has four bytes at most.
    (most - 3..=most).rev().find(is_start).unwrap_or(most)
}

#[cfg(test)]
mod tests;
