//! An agent's process, its pipes, and its output.

use std::{io, time::Duration};

use process::{Child, ChildInput, ChildIo, ChildOutput, Exit, Handle, Signal};
use session::agent::Line;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tracing::Instrument as _;

use super::lines::Lines;

/// The most messages that wait to be written. They are answers, each to something
/// that the agent asked, and one prompt.
const WAITING: usize = 1024;
/// How long the output of a process that has ended may still come.
const DRAIN: Duration = Duration::from_millis(500);
/// How much of its error output is read at a time, in bytes.
const COMPLAINT: usize = 4096;

/// A process that runs, or whose output is still to be read to its end.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    handle: Handle,
    /// The queue of its input; `None` once the input is closed.
    stdin: Option<mpsc::Sender<Vec<u8>>>,
    stdout: Option<Lines<ChildOutput>>,
    stderr: Option<pipe::Receiver>,
    exit: Option<Exit>,
    /// Until when the output is read after the process has ended.
    deaf_at: Option<Instant>,
}

#[derive(Debug)]
pub(super) enum Did {
    /// It printed a line.
    Said(Line),
    /// It printed something on its error output.
    Complained(String),
    /// It has ended, and all its output has been read.
    Exited(Exit),
}

impl Process {
    pub(super) fn new(mut child: Child) -> io::Result<Self> {
        let ChildIo::Pipes { stdin, stdout, stderr } = child.take_io() else {
            return Err(io::Error::other("it was started without pipes"));
        };
        let (writes, written) = mpsc::channel(WAITING);
        tokio::spawn(write(stdin, written).in_current_span());
        Ok(Self {
            handle: child.handle(),
            child,
            stdin: Some(writes),
            stdout: Some(Lines::new(stdout)),
            stderr: Some(stderr),
            exit: None,
            deaf_at: None,
        })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Queues input for the process. Input that does not fit is dropped with a warning: if the
    /// process reads nothing, the turn fails in the end.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        if let Some(stdin) = &self.stdin
            && stdin.try_send(bytes).is_err()
        {
            tracing::warn!(pid = self.child.pid, "an agent reads nothing of what it is told");
        }
    }

    /// Closes the input, once all queued input is written.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(super) async fn signal(&self, signal: Signal) {
        if let Err(error) = self.handle.signal_group(signal).await {
            tracing::debug!(%error, "an agent cannot be signalled");
        }
    }

    /// The next event of the process. Nothing is lost when the call is dropped.
    pub(super) async fn next(&mut self) -> Did {
        loop {
            if let (Some(exit), None, None) = (self.exit, &self.stdout, &self.stderr) {
                return Did::Exited(exit);
            }
            let deaf_at = self.deaf_at;
            tokio::select! {
                line = said(&mut self.stdout) => match line {
                    Some(line) => return Did::Said(line),
                    None => self.stdout = None,
                },
                complaint = complained(&mut self.stderr) => match complaint {
                    Some(complaint) => return Did::Complained(complaint),
                    None => self.stderr = None,
                },
                exit = self.child.wait(), if self.exit.is_none() => {
                    self.exit = Some(exit);
                    self.deaf_at = Some(Instant::now() + DRAIN);
                }
                () = until(deaf_at) => (self.stdout, self.stderr) = (None, None),
            }
        }
    }
}

/// The next line; waits for ever once the output is closed.
async fn said(stdout: &mut Option<Lines<ChildOutput>>) -> Option<Line> {
    match stdout {
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

async fn write(mut stdin: ChildInput, mut written: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = written.recv().await {
        if let Err(error) = stdin.write_all(&bytes).await {
            tracing::debug!(%error, "an agent reads no more");
            break;
        }
    }
    stdin.close().await;
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
