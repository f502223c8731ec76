//! The output of a session: numbered chunks of text, the newest of them kept.
//!
//! There is one log for each session, and one copy of its contents: a viewer is a position in
//! it ([`crate::terminal::viewer`]).
//!
//! - [`history`]: what is older than a number, from the disk and from here
//! - [`record`]: the form in which chunks are kept on disk
//! - [`retention`]: how much of that is kept

pub mod history;
pub mod record;
pub mod retention;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

pub use history::{Gather, History};
pub use retention::Retention;

/// The default size of a log, in bytes.
pub const DEFAULT_BOUND: usize = 2 * 1024 * 1024;
/// The longest chunk, in bytes: longer text becomes several.
pub const MAX_CHUNK: usize = 1024 * 1024;
/// Where output may have been lost before it reached the disk, numbers go on so far beyond the last
/// that it has: a client may have seen those in between, and no number means two things.
pub const RESTART_GAP: u64 = 1 << 20;
/// The largest number that anybody may begin with: every JSON reader can still hold it.
pub const MAX_SEQ: u64 = (1 << 53) - 1;

/// The memory of a chunk beside its text.
const OVERHEAD: usize = 64;
/// Shorter chunks are copied into a block that they share: alone, each would keep alive the whole
/// buffer that it was read into.
const SMALL: usize = 16 * 1024;
/// The smallest and the largest block.
const BLOCK: (usize, usize) = (4 * 1024, 64 * 1024);

/// A piece of a session's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its number: one more than that of the chunk before.
    pub seq: u64,
    /// Valid UTF-8, never empty.
    pub text: Bytes,
}

/// Output that was asked for and is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the output after {after} is not here: of this session it is kept from {first} to {last}; \
     ask for a snapshot"
)]
pub struct OutputGone {
    /// The number after which output was requested.
    pub after: u64,
    /// The number of the first chunk that is kept.
    pub first: u64,
    /// The number that was given last.
    pub last: u64,
}

/// The newest output of a session.
#[derive(Debug)]
pub struct Log {
    bound: usize,
    /// With each chunk, how many bytes there were up to its end.
    chunks: VecDeque<(Bytes, u64)>,
    /// The number of the first chunk that is kept, or of the next to come.
    first: u64,
    /// How many bytes there were up to the first chunk that is kept.
    start: u64,
    /// The block that small chunks are copied into.
    block: BytesMut,
}

impl Log {
    /// An empty log that keeps about so many bytes, what chunks cost beside their text included. The
    /// newest chunk is kept even if it alone is larger.
    pub fn new(bound: usize) -> Self {
        Self { bound, chunks: VecDeque::new(), first: 1, start: 0, block: BytesMut::new() }
    }

    /// Forgets what is kept, and gives the next chunk this number, or the next after all that were
    /// given if that is larger; but none above [`MAX_SEQ`]. See [`RESTART_GAP`].
    pub fn resume_at(&mut self, next_seq: u64) {
        self.first = next_seq.min(MAX_SEQ).max(self.last_seq() + 1);
        self.start = self.end();
        self.chunks.clear();
    }

    /// Keeps text that must be valid UTF-8, and gives the number of its chunk; of its last, where it
    /// is longer than [`MAX_CHUNK`]. Of nothing there is no chunk.
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

    /// The number of the first chunk that is kept; where none is, of the next to come.
    pub const fn first_seq(&self) -> u64 {
        self.first
    }

    /// The number that was given last; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.first + self.chunks.len() as u64 - 1
    }

    /// All chunks that follow a number.
    ///
    /// # Errors
    /// When not all of them are kept, or the number was never given.
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

    /// How many bytes follow a number, as far as they are kept.
    pub fn bytes_after(&self, seq: u64) -> u64 {
        self.end() - self.end_of(seq)
    }

    /// How many bytes are kept, what chunks cost beside their text included.
    pub fn size(&self) -> usize {
        (self.end() - self.start) as usize + self.chunks.len() * OVERHEAD
    }

    fn push(&mut self, text: Bytes) {
        let text = if text.len() < SMALL { self.packed(&text) } else { text };
        let end = self.end() + text.len() as u64;
        self.chunks.push_back((text, end));
        while self.size() > self.bound && self.chunks.len() > 1 {
            self.drop_oldest();
        }
    }

    fn packed(&mut self, text: &[u8]) -> Bytes {
        if self.block.capacity() < text.len() {
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

    /// How many bytes there were so far.
    fn end(&self) -> u64 {
        self.chunks.back().map_or(self.start, |(_, end)| *end)
    }

    /// How many bytes there were up to the end of a chunk: the nearest that is kept.
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

/// Chunks of a log, in order: clones share the log's copy.
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    log: &'a Log,
    next: u64,
    end: u64,
}

impl Chunks<'_> {
    /// The same, up to this many bytes together, at least one.
    #[must_use]
    pub fn up_to(mut self, bytes: u64) -> Self {
        let limit = self.log.end_of(self.next - 1) + bytes;
        let fitting = self.log.chunks.partition_point(|(_, end)| *end <= limit) as u64;
        self.end = (self.log.first + fitting).max(self.next + 1).min(self.end);
        self
    }

    /// The number of the last of them, if there are any.
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

/// The last place before `most` where no character is cut.
fn boundary(text: &[u8], most: usize) -> usize {
    let is_start = |at: &usize| text[*at] & 0b1100_0000 != 0b1000_0000;
    (most - 3..=most).rev().find(is_start).unwrap_or(most)
}

#[cfg(test)]
mod tests;
