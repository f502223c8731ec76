//! An agent's input: queued, kept for the next daemon, and only then written.

use std::{collections::VecDeque, io, sync::Arc};

use process::{ChildInput, Journal};
use serde::{Deserialize, Serialize};
use tokio::{sync::mpsc, task::JoinHandle};
use tracing::Instrument as _;

/// The most messages that wait to be written. They are answers, each to something that the agent asked, and
/// one prompt.
const WAITING: usize = 1024;

/// The facts about an agent's process that the next daemon has to know.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ProcessState {
    /// The number of bytes of the process's output up to the end of the last line that was taken.
    pub(super) taken: u64,
    /// The input that may not be written yet.
    pub(super) input: String,
    /// The number of bytes of input before [`input`](Self::input).
    pub(super) input_at: u64,
    /// Whether the input ends after that.
    pub(super) is_closed: bool,
}

/// The input of an agent's process.
#[derive(Debug)]
pub(super) struct Input {
    journal: Arc<Journal>,
    /// The queue of the task that writes; `None` once the input is closed.
    writes: Option<mpsc::Sender<Vec<u8>>>,
    writing: JoinHandle<()>,
    unwritten: Unwritten,
    /// Whether the input ends after `unwritten`.
    pub(super) is_closed: bool,
}

/// The input that may not be written yet. It begins with a whole character.
#[derive(Debug, Default)]
struct Unwritten {
    bytes: VecDeque<u8>,
    /// The number of bytes of input before `bytes`.
    at: u64,
    /// The number of bytes at the end of `bytes` that the writing task does not have yet.
    unreleased: usize,
}

impl Input {
    pub(super) fn new(stdin: ChildInput, journal: Arc<Journal>) -> Self {
        let (writes, written) = mpsc::channel(WAITING);
        let writing = tokio::spawn(write(stdin, written).in_current_span());
        // An earlier daemon may have written some of the input.
        let unwritten = Unwritten { at: journal.written_at_least(), ..Unwritten::default() };
        Self { journal, writes: Some(writes), writing, unwritten, is_closed: false }
    }

    /// The input of a process that an earlier daemon started.
    ///
    /// # Errors
    /// When it is not known how much of the input the earlier daemon has written.
    pub(super) fn resume(
        stdin: ChildInput,
        journal: Arc<Journal>,
        state: &ProcessState,
    ) -> io::Result<Self> {
        let unknown = || io::Error::other("it is not known what the agent was told");
        let written = journal.written().ok_or_else(unknown)?;
        let unwritten = Unwritten::resumed(state, written).ok_or_else(unknown)?;
        let mut input = Self::new(stdin, journal);
        (input.unwritten, input.is_closed) = (unwritten, state.is_closed);
        Ok(input)
    }

    pub(super) fn queue(&mut self, bytes: Vec<u8>) {
        if self.writes.is_some() {
            self.unwritten.queue(bytes);
        }
    }

    /// The input that may not be written yet, and the number of bytes of input before it.
    pub(super) fn left(&mut self) -> (u64, String) {
        self.unwritten.forget(self.journal.written_at_least());
        (self.unwritten.at, self.unwritten.text())
    }

    /// Gives the queued input to the writing task. Returns false if the task's queue is full: then the input is lost.
    pub(super) fn release(&mut self) -> bool {
        let bytes = self.unwritten.release();
        let length = bytes.len();
        let fits = bytes.is_empty()
            || self.writes.as_ref().is_none_or(|writes| writes.try_send(bytes).is_ok());
        if !fits {
            self.unwritten.lose(length);
        }
        if self.is_closed {
            self.writes = None;
        }
        fits
    }
}

impl Unwritten {
    /// The rest of a kept state, once this many bytes of input are written; `None` if the two do not fit together.
    fn resumed(state: &ProcessState, written: u64) -> Option<Self> {
        let done = usize::try_from(written.checked_sub(state.input_at)?).ok()?;
        let unreleased = state.input.len().checked_sub(done)?;
        let bytes = state.input.as_bytes().iter().copied().collect();
        Some(Self { bytes, at: state.input_at, unreleased })
    }

    fn queue(&mut self, bytes: Vec<u8>) {
        self.unreleased += bytes.len();
        self.bytes.extend(bytes);
    }

    /// Forgets the characters that end within the first `written` bytes of input.
    fn forget(&mut self, written: u64) {
        let done = usize::try_from(written.saturating_sub(self.at)).unwrap_or(usize::MAX);
        // Input that the task does not have yet is not written.
        let mut done = done.min(self.bytes.len() - self.unreleased);
        // The process may have read only the beginning of a character.
        while done > 0 && self.bytes.get(done).is_some_and(|byte| is_inside_character(*byte)) {
            done -= 1;
        }
        self.bytes.drain(..done);
        self.at += done as u64;
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        // An agent's input is JSON or a prompt, and begins with a whole character here, so it is text.
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// The bytes that the writing task does not have yet, which counts as having them from now on.
    fn release(&mut self) -> Vec<u8> {
        let from = self.bytes.len() - std::mem::take(&mut self.unreleased);
        self.bytes.range(from..).copied().collect()
    }

    /// Forgets the last bytes, which will not be written: those after them take their place in the input.
    fn lose(&mut self, bytes: usize) {
        self.bytes.truncate(self.bytes.len().saturating_sub(bytes));
    }
}

/// Whether a byte of UTF-8 is not the first one of its character.
const fn is_inside_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

impl Drop for Input {
    /// If the input was closed, the task still writes what is queued. Otherwise nothing more is written, and the input
    /// stays open for the next daemon.
    fn drop(&mut self) {
        if !self.is_closed {
            self.writing.abort();
        }
    }
}

async fn write(mut stdin: ChildInput, mut written: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = written.recv().await {
        if let Err(error) = stdin.write_all(&bytes).await {
            tracing::debug!(%error, "an agent reads no more");
            break;
        }
    }
    // After an error, too: a process that still runs has to see the end of its input.
    stdin.close().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state that is kept after this many bytes of a prompt of two characters, of two and three bytes, are written.
    fn kept(written: u64) -> (Unwritten, ProcessState) {
        let mut unwritten = Unwritten { at: 100, ..Unwritten::default() };
        unwritten.queue("é€".into());
        unwritten.release();
        unwritten.forget(100 + written);
        let (input_at, input) = (unwritten.at, unwritten.text());
        (unwritten, ProcessState { input_at, input, ..ProcessState::default() })
    }

    #[test]
    fn input_that_is_written_up_to_the_middle_of_a_character_is_kept_from_its_beginning() {
        let texts = [(0, "é€"), (1, "é€"), (2, "€"), (3, "€"), (4, "€"), (5, "")];
        for (written, text) in texts {
            let (_, state) = kept(written);
            assert_eq!((&*state.input, state.input_at), (text, 105 - text.len() as u64));
        }
    }

    #[test]
    fn the_next_daemon_writes_exactly_what_is_not_written_and_keeps_whole_characters() {
        for written in 0..=5 {
            let (_, state) = kept(written);
            let mut resumed = Unwritten::resumed(&state, 100 + written).unwrap();
            assert_eq!(resumed.release(), "é€".as_bytes()[written as usize..]);
            resumed.forget(100 + written);
            assert_eq!((resumed.at, resumed.text()), (state.input_at, state.input));
        }
        let (_, state) = kept(2);
        assert!(Unwritten::resumed(&state, 101).is_none());
        assert!(Unwritten::resumed(&state, 106).is_none());
    }

    #[test]
    fn input_that_is_lost_does_not_shift_what_follows() {
        let (mut unwritten, _) = kept(0);
        unwritten.queue(b"lost".to_vec());
        let lost = unwritten.release();
        unwritten.lose(lost.len());
        unwritten.queue(b"next".to_vec());
        assert_eq!(unwritten.release(), b"next");
        unwritten.forget(105);
        assert_eq!((unwritten.at, &*unwritten.text()), (105, "next"));
    }
}
