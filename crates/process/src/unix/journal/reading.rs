//! Reads output into a journal, so that a killed daemon loses none of it: the daemon into the ring, the supervisor, while
//! there is no daemon, behind it.

use std::{fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

use bytes::{Bytes, BytesMut};

use super::{
    Journal,
    layout::{self, HEAD, HELD, MOST_HELD, UNREAD, Word},
};

/// The most bytes of one read; the kernel returns no more of a terminal's output at once.
const PIECE: u64 = 4096;
/// How much of a large ring is freed at a time, in bytes.
const TIDIED: u64 = 256 << 10;

/// Reads a session's output into its journal. There is one for each journal.
///
/// A caller has taken ([`Journal::note`]) all output of a call before it makes the next one, or keeps
/// no more of it than fits into the ring.
#[derive(Debug)]
pub(crate) struct JournalReader {
    journal: Arc<Journal>,
    /// Output of an earlier daemon that it had not taken, and that was read while there was none.
    left: Bytes,
    /// The end of `left`, until the ring goes on there.
    goes_on_at: Option<u64>,
    /// Up to where the ring's memory was freed.
    tidied: u64,
}

impl JournalReader {
    /// A reader that begins with the output that was not taken.
    pub(crate) fn new(journal: Arc<Journal>) -> io::Result<Self> {
        let (left, end) = left(&journal)?;
        Ok(Self { journal, left, goes_on_at: Some(end), tidied: end })
    }

    /// Begins again with the output after this place, which was taken, as far as it is still there.
    pub(crate) fn go_back(&mut self, to: u64) -> io::Result<()> {
        let (left, end) = left_after(&self.journal, to)?;
        (self.left, self.goes_on_at) = (left, Some(end));
        Ok(())
    }

    /// The output of an earlier daemon that is not taken yet, up to this many bytes.
    pub(crate) fn left(&mut self, most: usize) -> Bytes {
        self.left.split_to(most.min(self.left.len()))
    }

    /// Calls `read` with room for one piece, and appends what it has read to `into`.
    pub(crate) fn read(
        &mut self,
        into: &mut BytesMut,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.go_on()?;
        let (journal, ring) = (&self.journal, self.journal.ring);
        let (end, armed) = (journal.get(Word::End), journal.get(Word::Armed));
        let room = PIECE.min(ring - end % ring);
        let begun = armed.max(end);
        // Only the part that is not filled yet: most reads are short, and the rest of the last filling is still there.
        if begun < end + room {
            journal.memory.with(at(begun, ring), (end + room - begun) as usize, |unread| {
                unread.fill(UNREAD);
            });
            journal.set(Word::Armed, end + room);
        }
        journal.memory.with(at(end, ring), room as usize, |piece| {
            let length = read(piece)?;
            // Within the call, so that nothing can fail between the read and the note of it.
            journal.set(Word::End, end + length as u64);
            into.extend_from_slice(piece.get(..length).unwrap_or_default());
            Ok(length)
        })
    }

    /// Frees memory of a large ring whose output was taken.
    pub(crate) fn tidy(&mut self) -> io::Result<()> {
        let (journal, ring) = (&self.journal, self.journal.ring);
        let taken = journal.get(Word::Taken).min(journal.get(Word::End));
        // A small ring is used again at once, and freeing pages costs more than they are worth.
        if ring <= layout::TERMINAL_RING || taken < self.tidied + TIDIED {
            return Ok(());
        }
        let (from, to) = (self.tidied % ring, taken % ring);
        self.tidied = taken;
        if from < to {
            return layout::free(&journal.file, HEAD + from, HEAD + to);
        }
        layout::free(&journal.file, HEAD + from, HEAD + ring)?;
        layout::free(&journal.file, HEAD, HEAD + to)
    }

    /// Lets the ring go on after the output of an earlier daemon, which the caller has taken now.
    fn go_on(&mut self) -> io::Result<()> {
        let Some(end) = self.goes_on_at.take() else { return Ok(()) };
        let journal = &self.journal;
        if journal.get(Word::HeldTo) > journal.get(Word::End) {
            let from = journal.get(Word::HeldFrom).max(end.saturating_sub(journal.ring));
            let held = journal.held(from, end)?;
            let first = (journal.ring - from % journal.ring).min(held.len() as u64) as usize;
            let (head, rest) = held.split_at(first);
            for (offset, part) in [(from, head), (from + first as u64, rest)] {
                journal.memory.with(at(offset, journal.ring), part.len(), |place| {
                    place.copy_from_slice(part);
                });
            }
        }
        // The ring goes on at `end` before the held part is given up: a kill here finds either, and both are right.
        journal.set(Word::Armed, end);
        journal.set(Word::End, end);
        journal.set(Word::HeldFrom, end);
        journal.set(Word::HeldTo, end);
        layout::free(&journal.file, HELD, HELD + layout::MOST_HELD as u64)
    }
}

/// The place of a byte of output in the memory.
fn at(offset: u64, ring: u64) -> usize {
    (HEAD + offset % ring) as usize
}

/// The output that was not taken, and its end.
fn left(journal: &Journal) -> io::Result<(Bytes, u64)> {
    left_after(journal, journal.taken()?)
}

fn left_after(journal: &Journal, taken: u64) -> io::Result<(Bytes, u64)> {
    let end = layout::true_end(&journal.file)?;
    let held_from = journal.get(Word::HeldFrom);
    let held_to = journal.get(Word::HeldTo);
    let has_held = held_to > end;
    let read_to = if has_held { held_from } else { end };
    if read_to.saturating_sub(taken) > journal.ring || taken > read_to.max(held_to) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "output was lost"));
    }
    let mut left = layout::read_ring(&journal.file, journal.ring, taken.min(read_to), read_to)?;
    if has_held {
        left.extend_from_slice(&journal.held(taken.max(held_from), held_to)?);
        return Ok((left.into(), held_to));
    }
    Ok((left.into(), end))
}

impl Journal {
    /// Output that the supervisor has read.
    fn held(&self, from: u64, to: u64) -> io::Result<Bytes> {
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        let at = from - self.get(Word::HeldFrom).min(from);
        self.file.read_exact_at(&mut bytes, HELD + at)?;
        Ok(bytes.into())
    }
}

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
