//! The supervisor's side of a journal: it reads a session's output while there is no daemon.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use super::layout::{self, HELD, MOST_HELD, Word};

/// The output of one session that is read while there is no daemon.
#[derive(Debug)]
pub(crate) struct HeldOutput {
    file: File,
    from: u64,
    to: u64,
}

impl HeldOutput {
    /// Goes on after all output that the daemon has read. Output that was held before, and that the
    /// daemon did not take over completely, stays.
    pub(crate) fn begin(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        let end = layout::true_end(&file)?;
        let (mut from, mut to) =
            (layout::get(&file, Word::HeldFrom)?, layout::get(&file, Word::HeldTo)?);
        // The daemon has read past what was held, so that is taken and its place is free.
        if to <= end {
            (from, to) = (end, end);
            layout::set(&file, Word::End, end)?;
            layout::set(&file, Word::HeldFrom, from)?;
            layout::set(&file, Word::HeldTo, to)?;
        }
        Ok(Self { file, from, to })
    }

    /// How many more bytes fit.
    pub(crate) fn room(&self) -> usize {
        MOST_HELD.saturating_sub((self.to - self.from) as usize)
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // The bytes before the number that makes them valid: a kill in between loses nothing that counts.
        self.file.write_all_at(bytes, HELD + (self.to - self.from))?;
        self.to += bytes.len() as u64;
        layout::set(&self.file, Word::HeldTo, self.to)
    }
}
