//! Reads the sound records of a segment piece by piece.

use bytes::{Buf, Bytes, BytesMut};

use super::{
    super::{Chunk, MAX_CHUNK, MAX_SEQ},
    HEAD, HEADER, MAGIC, VERSION, checksum,
};

/// The reason why a segment is not read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file does not begin with the segments' magic bytes.
    #[error("this is no segment of a session's history: it begins otherwise")]
    Magic,
    /// A newer Warren wrote the segment.
    #[error("this history has the form {0}, and only {VERSION} is known: use a newer Warren")]
    Version(u32),
    /// A record is damaged: a write was cut short, or the disk has changed the record.
    #[error("the history is damaged at byte {at}: what follows there is lost")]
    Record {
        /// The position in the file at which the record begins, in bytes.
        at: u64,
    },
}

/// Reads a segment as its bytes arrive. It holds at most one record and the bytes of the last push.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: BytesMut,
    /// The number in the header; `None` until the header was read.
    first: Option<u64>,
    /// The smallest number that the next chunk may have.
    next: u64,
    sound: u64,
    fault: Option<Fault>,
}

impl Reader {
    /// A reader at the beginning of a segment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the file. Take out all chunks before the next push, so that the
    /// buffer stays bounded. After a fault the bytes are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.fault.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next whole chunk; `None` if more bytes are needed or nothing sound follows.
    pub fn next_chunk(&mut self) -> Option<Chunk> {
        if self.fault.is_some() {
            return None;
        }
        let read = self.read_header().and_then(|()| self.read_record());
        read.unwrap_or_else(|fault| {
            self.fault = Some(fault);
            self.buffer = BytesMut::new();
            None
        })
    }

    /// The number in the header: no chunk has a smaller one. `None` until the header was read.
    pub const fn first_seq(&self) -> Option<u64> {
        self.first
    }

    /// The number of sound bytes so far. If the file is cut there, records may be appended.
    pub const fn sound_bytes(&self) -> u64 {
        self.sound
    }

    /// The fault that ended the reading, if any. A file that ends within a record has no fault, but
    /// is longer than its sound bytes.
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    fn read_header(&mut self) -> Result<(), Fault> {
        if self.first.is_some() {
            return Ok(());
        }
        // The first few bytes are enough to see that a file is of another kind.
        let begun = self.buffer.len().min(MAGIC.len());
        if self.buffer[..begun] != MAGIC[..begun] {
            return Err(Fault::Magic);
        }
        if self.buffer.len() < HEADER {
            return Ok(());
        }
        let mut header = self.buffer.split_to(HEADER);
        header.advance(MAGIC.len());
        let version = header.get_u32();
        if version != VERSION {
            return Err(Fault::Version(version));
        }
        self.next = header.get_u64();
        self.first = Some(self.next);
        self.sound = HEADER as u64;
        Ok(())
    }

    fn read_record(&mut self) -> Result<Option<Chunk>, Fault> {
        let Some(mut head) = self.buffer.get(..HEAD).filter(|_| self.first.is_some()) else {
            return Ok(None);
        };
        let (length, sum, seq) = (head.get_u32() as usize, head.get_u32(), head.get_u64());
        // Checked before the text has come: a damaged length must not make the reader wait for gigabytes.
        if !(1..=MAX_CHUNK).contains(&length) || !(self.next..=MAX_SEQ).contains(&seq) {
            return Err(self.damaged());
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let text = self.buffer.split_to(length).freeze();
        self.checked(seq, sum, text).map(Some)
    }

    fn checked(&mut self, seq: u64, sum: u32, text: Bytes) -> Result<Chunk, Fault> {
        if checksum(seq.to_be_bytes(), &text) != sum || std::str::from_utf8(&text).is_err() {
            return Err(self.damaged());
        }
        self.next = seq + 1;
        self.sound += (HEAD + text.len()) as u64;
        Ok(Chunk { seq, text })
    }

    const fn damaged(&self) -> Fault {
        Fault::Record { at: self.sound }
    }
}
