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
    /// The input that may not be written yet.
    left: VecDeque<u8>,
    /// The number of bytes of input before `left`.
    left_at: u64,
    /// The number of bytes at the end of `left` that the writing task does not have yet.
    unreleased: usize,
    /// Whether the input ends after `left`.
    pub(super) is_closed: bool,
}

impl Input {
    pub(super) fn new(stdin: ChildInput, journal: Arc<Journal>) -> Self {
        let (writes, written) = mpsc::channel(WAITING);
        let writing = tokio::spawn(write(stdin, written).in_current_span());
        // An earlier daemon may have written some of the input.
        let (left, left_at) = (VecDeque::new(), journal.written_at_least());
        let writes = Some(writes);
        Self { journal, writes, writing, left, left_at, unreleased: 0, is_closed: false }
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
        let done = written.checked_sub(state.input_at).and_then(|done| usize::try_from(done).ok());
        let left = done.and_then(|done| state.input.as_bytes().get(done..)).ok_or_else(unknown)?;
        let mut input = Self::new(stdin, journal);
        input.queue(left.to_vec());
        input.is_closed = state.is_closed;
        Ok(input)
    }

    pub(super) fn queue(&mut self, bytes: Vec<u8>) {
        if self.writes.is_some() {
            self.unreleased += bytes.len();
            self.left.extend(bytes);
        }
    }

    /// The number of bytes of input that are certainly written, and the input after them.
    pub(super) fn left(&mut self) -> (u64, String) {
        let written = self.journal.written_at_least();
        let done = usize::try_from(written.saturating_sub(self.left_at)).unwrap_or(usize::MAX);
        // Input that the task does not have yet is not written.
        let done = done.min(self.left.len() - self.unreleased);
        self.left.drain(..done);
        self.left_at += done as u64;
        // An agent's input is JSON or a prompt, so it is text.
        let left: Vec<u8> = self.left.iter().copied().collect();
        (self.left_at, String::from_utf8(left).unwrap_or_default())
    }

    /// Gives the queued input to the writing task. Returns false if the task's queue is full: then the input is lost.
    pub(super) fn release(&mut self) -> bool {
        let from = self.left.len() - self.unreleased;
        let bytes: Vec<u8> = self.left.range(from..).copied().collect();
        self.unreleased = 0;
        let fits = bytes.is_empty()
            || self.writes.as_ref().is_none_or(|writes| writes.try_send(bytes).is_ok());
        if self.is_closed {
            self.writes = None;
        }
        fits
    }
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
