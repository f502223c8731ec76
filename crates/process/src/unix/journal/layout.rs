//! Where the parts of a journal are, and its numbers.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use rustix::fs::ftruncate;

use crate::unix::kernel;

/// The size of the numbers at the beginning, in bytes: one page.
pub(super) const HEAD: u64 = 4096;
/// The part for output that the supervisor read while there was no daemon.
pub(super) const HELD: u64 = 32 << 20;
/// The most bytes of such output.
pub(crate) const MOST_HELD: usize = 1 << 20;
/// The two places for the state, and the longest state.
pub(super) const STATES: [u64; 2] = [40 << 20, 48 << 20];
pub(super) const MOST_STATE: usize = 4 << 20;
/// The notes. Their place grows without end, and what is dropped at its beginning takes no memory.
pub(super) const NOTES: u64 = 64 << 20;

/// The size of the ring for output that is read: of a terminal, which is taken at once, and of pipes,
/// whose unfinished lines stay in it.
pub(crate) const TERMINAL_RING: u64 = 128 << 10;
pub(crate) const PIPE_RING: u64 = 16 << 20;
const MOST_RING: u64 = 16 << 20;

/// The numbers of a journal. Output is numbered by its bytes since the start of the process.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(super) enum Word {
    /// The size of the ring.
    Ring,
    /// The end of the output that is known to be in the ring.
    End,
    /// The end of the part of the ring that was filled with [`UNREAD`] for a read.
    Armed,
    /// The output that the supervisor read: its beginning and its end.
    HeldFrom,
    HeldTo,
    /// The notes that are kept: their beginning and their end.
    NotesFrom,
    NotesEnd,
    /// The end of the output that was taken, if no note says more.
    Taken,
    /// The length of the state, doubled, and its place in the lowest bit.
    State,
    /// The end of the input that was written, and where the write that was begun last ends.
    Written,
    Writing,
}

/// A byte that no text in UTF-8 contains. A part of the ring is filled with it before a read, so that
/// it shows how much was read even if the daemon was killed before it noted that.
pub(super) const UNREAD: u8 = 0xff;

/// Makes the memory of a journal.
pub(crate) fn create(ring: u64) -> io::Result<File> {
    let file = kernel::memory_file()?;
    ftruncate(&file, HEAD + ring)?;
    set(&file, Word::Ring, ring)?;
    Ok(file)
}

/// The size of a journal's ring.
pub(super) fn ring(file: &File) -> io::Result<u64> {
    let ring = get(file, Word::Ring)?;
    let is_valid = ring > 0 && ring <= MOST_RING && ring % HEAD == 0;
    if is_valid { Ok(ring) } else { Err(io::ErrorKind::InvalidData.into()) }
}

pub(super) fn get(file: &File, word: Word) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, word as u64 * 8)?;
    Ok(u64::from_ne_bytes(bytes))
}

pub(super) fn set(file: &File, word: Word, value: u64) -> io::Result<()> {
    file.write_all_at(&value.to_ne_bytes(), word as u64 * 8)
}

/// Frees the memory of a part, which reads as zeros then. Only whole pages are freed.
pub(super) fn free(file: &File, from: u64, to: u64) -> io::Result<()> {
    let (from, to) = (from - from % HEAD, to - to % HEAD);
    if from < to {
        kernel::punch_hole(file, from, to - from)?;
    }
    Ok(())
}

/// Reads output from the ring: at most its size, and not beyond its end.
pub(super) fn read_ring(file: &File, ring: u64, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
    let first = (ring - from % ring).min(bytes.len() as u64) as usize;
    let (head, rest) = bytes.split_at_mut(first);
    file.read_exact_at(head, HEAD + from % ring)?;
    file.read_exact_at(rest, HEAD)?;
    Ok(bytes)
}

/// The end of the output in the ring, also of a read that the daemon could not note any more.
pub(super) fn true_end(file: &File) -> io::Result<u64> {
    let (end, armed) = (get(file, Word::End)?, get(file, Word::Armed)?);
    let ring = ring(file)?;
    // Nothing was armed, or the numbers make no sense together.
    if armed <= end || armed - end > ring {
        return Ok(end);
    }
    let filled = read_ring(file, ring, end, armed)?;
    let read = filled.iter().rposition(|byte| *byte != UNREAD).map_or(0, |last| last + 1);
    Ok(end + read as u64)
}
