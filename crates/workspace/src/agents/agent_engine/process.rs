//! An agent's process, its pipes, and its output.

use std::{io, sync::Arc, time::Duration};

use process::{Child, ChildIo, ChildOutput, Exit, Handle, Journal, Signal};
use session::agent::Line;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    time::{Instant, sleep_until},
};

use super::{
    input::{Input, ProcessState},
    lines::Lines,
};

/// How long output is still read after a process has ended.
const DRAIN: Duration = Duration::from_millis(500);
/// How much of a process's error output is read at a time, in bytes.
const COMPLAINT: usize = 4096;

/// A process that runs, or whose output is still to be read to its end.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    handle: Handle,
    input: Input,
    stdout: Option<Lines<ChildOutput>>,
    stderr: Option<pipe::Receiver>,
    exit: Option<Exit>,
    /// How many bytes of its output an earlier daemon has shown.
    shown: u64,
    /// [`Process::taken`] once the output is closed.
    ended_at: u64,
    /// Until when the output is read after the process has ended.
    deaf_at: Option<Instant>,
}

/// The next thing that a process does.
#[derive(Debug)]
pub(super) enum ProcessEvent {
    /// It printed a line.
    Said(Line),
    /// It printed something on its error output.
    Complained(String),
    /// It has ended, and all its output has been read.
    Exited(Exit),
}

impl Process {
    pub(super) fn new(child: Child) -> io::Result<Self> {
        Self::with(child, None)
    }

    /// A process that an earlier daemon started, with the state that the daemon has kept.
    pub(super) fn take_over(child: Child, state: &ProcessState) -> io::Result<Self> {
        Self::with(child, Some(state))
    }

    fn with(mut child: Child, state: Option<&ProcessState>) -> io::Result<Self> {
        let ChildIo::Pipes { stdin, mut stdout, stderr } = child.take_io() else {
            return Err(io::Error::other("it was started without pipes"));
        };
        let journal = Arc::clone(&child.journal);
        let (input, taken, shown) = match state {
            None => (Input::new(stdin, journal), 0, 0),
            Some(state) => {
                // Lines after this position are not part of the kept state, so they are read again.
                stdout.go_back(state.taken)?;
                let shown = journal.taken()?;
                (Input::resume(stdin, journal, state)?, state.taken, shown)
            }
        };
        let (stdout, stderr) = (Some(Lines::new(stdout, taken)), Some(stderr));
        let (handle, exit, ended_at, deaf_at) = (child.handle(), None, 0, None);
        Ok(Self { child, handle, input, stdout, stderr, exit, shown, ended_at, deaf_at })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The facts about the process that the next daemon has to know.
    pub(super) fn state(&mut self) -> ProcessState {
        let (input_at, input) = self.input.left();
        let is_closed = self.input.is_closed;
        ProcessState { taken: self.taken(), input_at, input, is_closed }
    }

    /// The process's journal.
    pub(super) fn journal(&self) -> &Arc<Journal> {
        &self.child.journal
    }

    /// The number of bytes of its output up to the end of the last line.
    pub(super) fn taken(&self) -> u64 {
        self.stdout.as_ref().map_or(self.ended_at, Lines::taken)
    }

    /// Whether an earlier daemon has shown the last line already.
    pub(super) fn was_shown(&self) -> bool {
        self.taken() <= self.shown
    }

    /// Queues input for the process, until [`Process::release_input`].
    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        self.input.queue(bytes);
    }

    /// Closes the input, once all queued input is written.
    pub(super) fn close_stdin(&mut self) {
        self.input.is_closed = true;
    }

    /// Lets the queued input be written. Input that does not fit is dropped with a warning: if the process
    /// reads nothing, the turn fails in the end.
    pub(super) fn release_input(&mut self) {
        if !self.input.release() {
            tracing::warn!(pid = self.child.pid, "an agent reads nothing of what it is told");
        }
    }

    pub(super) async fn signal(&self, signal: Signal) {
        if let Err(error) = self.handle.signal_group(signal).await {
            tracing::debug!(%error, "an agent cannot be signalled");
        }
    }

    /// The next event of the process. Nothing is lost when the call is dropped.
    pub(super) async fn next(&mut self) -> ProcessEvent {
        loop {
            if let (Some(exit), None, None) = (self.exit, &self.stdout, &self.stderr) {
                return ProcessEvent::Exited(exit);
            }
            let deaf_at = self.deaf_at;
            tokio::select! {
                line = said(&mut self.stdout) => match line {
                    Some(line) => return ProcessEvent::Said(line),
                    None => self.close_stdout(),
                },
                complaint = complained(&mut self.stderr) => match complaint {
                    Some(complaint) => return ProcessEvent::Complained(complaint),
                    None => self.stderr = None,
                },
                exit = self.child.wait(), if self.exit.is_none() => {
                    self.exit = Some(exit);
                    // A background process may keep the output open for ever.
                    self.deaf_at = Some(Instant::now() + DRAIN);
                }
                () = until(deaf_at) => {
                    self.close_stdout();
                    self.stderr = None;
                }
            }
        }
    }

    fn close_stdout(&mut self) {
        self.ended_at = self.taken();
        self.stdout = None;
    }
}

/// The next line; waits for ever once the output is closed.
async fn said(stdout: &mut Option<Lines<ChildOutput>>) -> Option<Line> {
    match stdout {
        // An error counts as the end of the output.
        Some(lines) => lines.next().await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

async fn complained(stderr: &mut Option<pipe::Receiver>) -> Option<String> {
    let Some(stderr) = stderr else { return std::future::pending().await };
    let mut bytes = Vec::with_capacity(COMPLAINT);
    let read = stderr.read_buf(&mut bytes).await.unwrap_or(0);
    (read > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The end of a process, in the type of `session::agent`.
pub(super) const fn exit(exit: process::Exit) -> session::agent::Exit {
    match exit {
        process::Exit::Code(code) => session::agent::Exit::Code(code),
        process::Exit::Signal(signal) => session::agent::Exit::Signal(signal),
        process::Exit::Lost => session::agent::Exit::Lost,
    }
}

/// A signal, in the type of the supervisor.
pub(super) const fn signal(signal: session::agent::Signal) -> process::Signal {
    match signal {
        session::agent::Signal::Int => process::Signal::Interrupt,
        session::agent::Signal::Term => process::Signal::Terminate,
    }
}
