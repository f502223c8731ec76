//! A session's journal: memory in which its output stays until it is stored. It outlives the daemon,
//! since the supervisor holds it, too.
//!
//! Output is read into a ring. The daemon makes a note of what it takes from there before it shows it
//! to anybody, and drops the note once that is on the disk. While there is no daemon, the supervisor
//! reads. So the next daemon finds every byte once, whenever the earlier one was killed.
//!
//! - [`Journal`]: notes, a state, and how far input is written
//! - `reading`: the ring, and what the supervisor reads; `layout`: the parts of the memory

mod layout;
mod reading;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, IoSlice},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::FileExt as _,
    },
    sync::{Arc, atomic::Ordering},
};

use rustix::io::pwritev;

use self::layout::{HEAD, MOST_STATE, NOTES, STATES, Word};
pub(crate) use self::{
    layout::{MOST_HELD, PIPE_RING, TERMINAL_RING, create},
    reading::{HeldOutput, JournalReader},
};
use crate::unix::unsafe_calls::SharedMemory;

/// The most bytes of notes. Beyond them the older ones are dropped: their output cannot be stored, for
/// example because the disk is full.
const MOST_NOTES: u64 = 4 << 20;
/// The bytes before a note: its length, the end of the output that was taken with it, and its mark.
const NOTE_HEAD: u64 = 24;

/// A session's journal, as the daemon uses it. One caller at a time makes and drops notes.
#[derive(Debug)]
pub struct Journal {
    file: File,
    memory: SharedMemory,
    ring: u64,
}

/// A note about output that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The number of bytes of output up to the end of what was taken.
    pub taken: u64,
    /// The daemon's number for it.
    pub mark: u64,
    /// The daemon's text.
    pub text: Vec<u8>,
}

impl Journal {
    pub(crate) fn open(file: OwnedFd) -> io::Result<Arc<Self>> {
        let file = File::from(file);
        let ring = layout::ring(&file)?;
        let memory = SharedMemory::map(file.as_fd(), (HEAD + ring) as usize)?;
        Ok(Arc::new(Self { file, memory, ring }))
    }

    /// Makes a note. `taken` is the number of bytes of output up to the end of what it is about.
    /// Returns the end of the notes, for [`Journal::drop_notes`].
    ///
    /// # Errors
    /// The kernel's error: there is no memory left. No note was made then.
    pub fn note(&self, taken: u64, mark: u64, text: &[u8]) -> io::Result<u64> {
        let end = self.get(Word::NotesEnd);
        let mut head = [0; NOTE_HEAD as usize];
        head[..8].copy_from_slice(&(text.len() as u64).to_ne_bytes());
        head[8..16].copy_from_slice(&taken.to_ne_bytes());
        head[16..].copy_from_slice(&mark.to_ne_bytes());
        let length = NOTE_HEAD + text.len() as u64;
        let written = pwritev(&self.file, &[IoSlice::new(&head), IoSlice::new(text)], NOTES + end)?;
        if written as u64 != length {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // The note counts from here on.
        self.set(Word::NotesEnd, end + length);
        self.set(Word::Taken, taken);
        if end + length - self.get(Word::NotesFrom) > MOST_NOTES {
            self.drop_notes(end)?;
        }
        Ok(end + length)
    }

    /// Drops the notes up to this end of one: what they are about is stored.
    ///
    /// # Errors
    /// The kernel's error: their memory is not freed.
    pub fn drop_notes(&self, until: u64) -> io::Result<()> {
        let from = self.get(Word::NotesFrom);
        if until <= from {
            return Ok(());
        }
        self.set(Word::NotesFrom, until);
        layout::free(&self.file, NOTES + from, NOTES + until)
    }

    /// All notes, the oldest first: a few MiB at most.
    ///
    /// # Errors
    /// The kernel's error, or memory that is not as this code leaves it.
    pub fn notes(&self) -> io::Result<Vec<Note>> {
        let (from, end) = (self.get(Word::NotesFrom), self.get(Word::NotesEnd));
        if end.saturating_sub(from) > 2 * MOST_NOTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; end.saturating_sub(from) as usize];
        self.file.read_exact_at(&mut bytes, NOTES + from)?;
        let (mut rest, mut notes) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let note = note(&mut rest).ok_or(io::ErrorKind::InvalidData)?;
            notes.push(note);
        }
        Ok(notes)
    }

    /// The end of the output that was taken.
    ///
    /// # Errors
    /// As for [`Journal::notes`].
    pub fn taken(&self) -> io::Result<u64> {
        // The last note may have been made right before the daemon was killed.
        let noted = self.notes()?.last().map_or(0, |note| note.taken);
        Ok(noted.max(self.get(Word::Taken)))
    }

    /// Keeps a state in place of the earlier one: all of it, or the earlier one stays. Returns whether
    /// it is short enough to be kept; if not, none is kept.
    ///
    /// # Errors
    /// The kernel's error: there is no memory left.
    pub fn keep_state(&self, state: &[u8]) -> io::Result<bool> {
        if state.len() > MOST_STATE {
            self.set(Word::State, 0);
            return Ok(false);
        }
        let place = 1 - (self.get(Word::State) & 1);
        self.file.write_all_at(state, STATES[place as usize])?;
        self.set(Word::State, (state.len() as u64) << 1 | place);
        Ok(true)
    }

    /// The state that was kept last.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn state(&self) -> io::Result<Option<Vec<u8>>> {
        let (length, place) = (self.get(Word::State) >> 1, self.get(Word::State) & 1);
        if length == 0 || length > MOST_STATE as u64 {
            return Ok(None);
        }
        let mut state = vec![0; length as usize];
        self.file.read_exact_at(&mut state, STATES[place as usize])?;
        Ok(Some(state))
    }

    /// Notes that input is about to be written, up to this number of bytes since the start.
    pub fn writes(&self, to: u64) {
        self.set(Word::Writing, to);
    }

    /// Notes that input is written up to this number of bytes, and no write is under way.
    pub fn wrote(&self, to: u64) {
        self.set(Word::Written, to);
        self.set(Word::Writing, to);
    }

    /// How much input was written at least, also during a write.
    pub fn written_at_least(&self) -> u64 {
        self.get(Word::Written)
    }

    /// How much input was written; `None` if an earlier daemon was killed in the middle of a write, so
    /// that nobody knows.
    pub fn written(&self) -> Option<u64> {
        let (written, writing) = (self.get(Word::Written), self.get(Word::Writing));
        (written == writing).then_some(written)
    }

    fn get(&self, word: Word) -> u64 {
        self.memory.word(word as usize).load(Ordering::SeqCst)
    }

    fn set(&self, word: Word, value: u64) {
        self.memory.word(word as usize).store(value, Ordering::SeqCst);
    }
}

fn note(rest: &mut &[u8]) -> Option<Note> {
    let number = |bytes: &[u8]| Some(u64::from_ne_bytes(bytes.try_into().ok()?));
    let (head, after) = rest.split_at_checked(NOTE_HEAD as usize)?;
    let length = usize::try_from(number(&head[..8])?).ok()?;
    let (text, after) = after.split_at_checked(length)?;
    *rest = after;
    let (taken, mark) = (number(&head[8..16])?, number(&head[16..])?);
    Some(Note { taken, mark, text: text.to_vec() })
}
