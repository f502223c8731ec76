//! The format of chunks on disk.
//!
//! A segment is a header followed by records. All numbers are big-endian:
//!
//! ```text
//! header   magic "warren-s" · version u32 · number of its first chunk u64
//! record   length of the text u32 · CRC-32 of number and text u32 · number u64 · text
//! ```
//!
//! A segment is only ever appended to. If a write was cut short (the process was killed, the disk
//! was full, the power failed), everything before it is read, and nothing after it.
//!
//! - `reader`: reads the sound records of a segment piece by piece

mod reader;

use bytes::{BufMut, BytesMut};

pub use reader::{Fault, Reader};

use super::Chunk;

/// The length of a segment's header, in bytes.
pub const HEADER: usize = 20;
/// The length of a record before its text, in bytes.
pub const HEAD: usize = 16;

/// The first bytes of every segment.
const MAGIC: [u8; 8] = *b"warren-s";
/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// The header of a segment whose first chunk has this number.
pub fn header(first_seq: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_be_bytes());
    header[12..].copy_from_slice(&first_seq.to_be_bytes());
    header
}

/// The bytes of a record before its text, for a caller that writes both without copying the text.
/// The chunk comes from a log, so its text is no longer than [`super::MAX_CHUNK`].
pub fn head(chunk: &Chunk) -> [u8; HEAD] {
    let seq = chunk.seq.to_be_bytes();
    let length = u32::try_from(chunk.text.len()).unwrap_or(u32::MAX);
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&length.to_be_bytes());
    head[4..8].copy_from_slice(&checksum(seq, &chunk.text).to_be_bytes());
    head[8..].copy_from_slice(&seq);
    head
}

/// Appends the whole record of a chunk.
pub fn encode(chunk: &Chunk, into: &mut BytesMut) {
    into.reserve(HEAD + chunk.text.len());
    into.put_slice(&head(chunk));
    into.put_slice(&chunk.text);
}

fn checksum(seq: [u8; 8], text: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&seq);
    hasher.update(text);
    hasher.finalize()
}

#[cfg(test)]
mod tests;
