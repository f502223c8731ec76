//! Reading of a file that is offered, as long as it stays what it was.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
};

use base::system::{file_id, times};

use super::OfferedFile;
use crate::{
    system::{FileExt, open_regular},
    tree::{PIECE, piece_len},
};

/// The most that is read at once, in bytes.
pub const MAX_READ: u64 = 16 << 20;

/// By what it is seen that a file was changed: a hash belongs to a path and to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// In bytes.
    pub size: u64,
    /// When its content was written and when its inode was, in ns since 1970.
    pub times: [i128; 2],
    /// Which file it is, by device and inode.
    pub file: [u64; 2],
}

impl Stamp {
    pub(crate) fn of(meta: &Metadata) -> Self {
        Self { size: meta.len(), times: times(meta), file: file_id(meta) }
    }
}

/// An open file that is offered.
#[derive(Debug)]
pub struct Reader {
    file: File,
    stamp: Stamp,
}

impl Reader {
    pub(super) fn open(offered: &OfferedFile) -> io::Result<Self> {
        // The path was resolved: a link there is new. A pipe must not be waited for.
        let file = open_regular(&offered.path)?;
        let meta = file.metadata()?;
        if !meta.is_file() || meta.len() != offered.size {
            return Err(changed());
        }
        Ok(Self { file, stamp: Stamp::of(&meta) })
    }

    /// How long it was when it was opened, in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.size
    }

    /// Its size and times when it was opened.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Reads exactly `len` bytes, at most [`MAX_READ`].
    ///
    /// # Errors
    ///
    /// The system's error; [`io::ErrorKind::InvalidInput`] for a range that lies past the end or is longer than
    /// that, [`io::ErrorKind::InvalidData`] when the file was changed since it was opened.
    pub fn read_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.size() && len <= MAX_READ);
        if end.is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "outside of the file"));
        }
        // At most MAX_READ: it fits.
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        self.check_unchanged()?;
        Ok(bytes)
    }

    /// Reads one piece of a hash tree; empty for one past the end.
    ///
    /// # Errors
    ///
    /// As [`read_at`](Self::read_at).
    pub fn piece(&self, piece: u64) -> io::Result<Vec<u8>> {
        match piece_len(self.size(), piece) {
            0 => Ok(Vec::new()),
            length => self.read_at(piece * PIECE, length),
        }
    }

    /// Reads all of it in order.
    pub fn stream(&self) -> impl Read + '_ {
        Stream { file: &self.file, offset: 0 }
    }

    /// # Errors
    ///
    /// When the file is another than when it was opened.
    pub(crate) fn check_unchanged(&self) -> io::Result<()> {
        if Stamp::of(&self.file.metadata()?) == self.stamp { Ok(()) } else { Err(changed()) }
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file was changed since it was looked at")
}

/// A file read in order, without a place that others share.
struct Stream<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
