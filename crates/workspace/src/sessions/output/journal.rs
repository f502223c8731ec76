//! The output of a session in its journal, until it is on the disk: if this daemon is killed, the next one continues
//! from the journal.

use std::{io, sync::Arc};

use base::Secret;
use process::Journal;
use serde::{Deserialize, Serialize};
use session::terminal::log::Chunk;

/// The most output between two kept screens, in bytes. The log must reach back to the last kept screen, on which the
/// next daemon paints the output after it.
const BETWEEN_SCREENS: usize = 1024 * 1024;

/// The journal of a session, as its output uses it.
pub(crate) struct OutputJournal {
    journal: Arc<Journal>,
    /// The number of bytes of output that were read.
    read: u64,
    /// The number of bytes of output that are in notes.
    taken: u64,
    /// The end of the notes.
    end: u64,
    /// The end of the notes when their output was last handed to the writer.
    written: u64,
    /// The bytes of output since the screen was kept.
    unkept: usize,
    /// The most output before the screen is kept again, in bytes.
    between: usize,
    /// The key of an agent that runs in a terminal.
    key: Option<Secret>,
}

/// The state of a terminal that a journal keeps beside its output.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct TerminalState {
    /// The screen at some place in the output.
    pub(crate) screen: Option<JournalScreen>,
    /// The key of an agent that runs in the terminal.
    key: Option<String>,
}

/// A screen at some place in the output, as it is kept in the journal. The clients' form names the session, too.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct JournalScreen {
    /// The number of the last output that is on it.
    pub(crate) seq: u64,
    pub(crate) cols: u16,
    pub(crate) rows: u16,
    /// The text that paints it.
    pub(crate) data: String,
}

impl TerminalState {
    /// The state that an earlier daemon has kept.
    pub(crate) fn of(journal: &Journal) -> Self {
        let state = journal.state().ok().flatten();
        state.and_then(|state| serde_json::from_slice(&state).ok()).unwrap_or_default()
    }

    pub(crate) fn key(&self) -> Option<Secret> {
        self.key.as_deref().map(Secret::from)
    }
}

impl OutputJournal {
    /// Continues a journal where an earlier daemon stopped; a new one from its beginning. `bound` is the
    /// number of bytes that the log keeps.
    pub(crate) fn new(journal: Arc<Journal>, bound: usize) -> io::Result<Self> {
        let taken = journal.taken()?;
        let between = BETWEEN_SCREENS.min(bound / 4);
        let key = TerminalState::of(&journal).key();
        let (unkept, end) = (0, 0);
        Ok(Self { journal, read: taken, taken, end, written: 0, unkept, between, key })
    }

    /// Notes that this much output was read.
    pub(crate) const fn note_read(&mut self, bytes: usize) {
        self.read += bytes as u64;
    }

    /// Notes that output was read up to this position, in bytes.
    pub(crate) const fn note_read_to(&mut self, end: u64) {
        self.read = end;
    }

    /// Notes chunks. `rest` is the number of bytes that were read but are in none of the chunks yet.
    pub(crate) fn note(&mut self, chunks: impl ExactSizeIterator<Item = Chunk>, rest: usize) {
        let taken = self.taken.max(self.read.saturating_sub(rest as u64));
        let mut left = chunks.len();
        for chunk in chunks {
            left -= 1;
            self.unkept += chunk.text.len();
            // The bytes of one read count as taken only with the last of its chunks.
            self.taken = if left == 0 { taken } else { self.taken };
            match self.journal.note(self.taken, chunk.seq, &chunk.text) {
                Ok(end) => self.end = end,
                Err(error) => tracing::warn!(%error, "output would be lost with this server"),
            }
        }
    }

    /// Notes that all output so far is about to be written to the disk.
    pub(crate) const fn note_writing(&mut self) {
        self.written = self.end;
    }

    /// Notes that the output up to the last [`OutputJournal::note_writing`] is on the disk.
    pub(crate) fn note_written(&self) {
        if let Err(error) = self.journal.drop_notes(self.written) {
            tracing::debug!(%error, "the memory of a journal stays");
        }
    }

    /// Whether the screen is to be kept now.
    pub(crate) const fn wants_screen(&self) -> bool {
        self.unkept > self.between
    }

    pub(crate) fn keep_screen(&mut self, screen: JournalScreen) {
        self.unkept = 0;
        self.keep(Some(screen));
    }

    /// Keeps the key of an agent that runs in the terminal.
    pub(crate) fn keep_key(&mut self, key: Secret) {
        self.key = Some(key);
        self.keep(None);
    }

    fn keep(&self, screen: Option<JournalScreen>) {
        match self.keep_state(screen) {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(
                    "a screen is too long to be kept, and would be lost with this server"
                );
                // The screen is painted again from the output, but nothing makes the key again.
                self.keep_key_alone();
            }
            Err(error) => tracing::warn!(%error, "a screen would be lost with this server"),
        }
    }

    fn keep_key_alone(&self) {
        if self.key.is_some()
            && let Err(error) = self.keep_state(None)
        {
            tracing::warn!(%error, "an agent's key would be lost with this server");
        }
    }

    /// Returns whether the state is short enough to be kept.
    fn keep_state(&self, screen: Option<JournalScreen>) -> io::Result<bool> {
        let key = self.key.as_ref().map(|key| key.expose().to_owned());
        let state = serde_json::to_vec(&TerminalState { screen, key })?;
        self.journal.keep_state(&state)
    }
}
