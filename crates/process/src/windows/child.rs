//! A process that was started, and its job.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::{Instant, sleep},
};
use uuid::Uuid;

use super::job::Job;
use crate::{
    error::ProcessError,
    signal::{Exit, Signal},
};

/// The flag of a program that opens no window, and so hears no Ctrl-C of ours (`CREATE_NO_WINDOW`).
pub(super) const NO_WINDOW: u32 = 0x0800_0000;

/// The most bytes that one read returns.
const MOST_PER_READ: usize = 64 * 1024;
/// How long the end of a job is waited for, and the pause between two looks.
const ENDING: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// The standard error of a process.
pub type ChildErrors = ChildStderr;

/// A process that was started. Dropping this closes its pipes, and stops nothing else.
#[derive(Debug)]
pub struct Child {
    /// The id of the process.
    pub pid: u32,
    /// Our ends of its stdio; see [`Child::take_io`].
    pub io: ChildIo,
    process: tokio::process::Child,
    handle: Handle,
}

/// Our ends of a child's stdio.
#[derive(Debug)]
pub enum ChildIo {
    /// Three pipes.
    Pipes {
        /// The child's standard input.
        stdin: ChildInput,
        /// The child's standard output.
        stdout: ChildOutput,
        /// The child's standard error.
        stderr: ChildErrors,
    },
    /// The ends were already taken out.
    Taken,
}

/// The standard input of a process.
#[derive(Debug)]
pub struct ChildInput(ChildStdin);

/// The standard output of a process.
#[derive(Debug)]
pub struct ChildOutput(ChildStdout);

/// The job of a child: its first process and all that it started. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    id: Uuid,
    job: Arc<Job>,
}

impl Child {
    pub(super) fn new(mut process: tokio::process::Child, id: Uuid, job: Arc<Job>) -> Option<Self> {
        let io = ChildIo::Pipes {
            stdin: ChildInput(process.stdin.take()?),
            stdout: ChildOutput(process.stdout.take()?),
            stderr: process.stderr.take()?,
        };
        Some(Self { pid: process.id()?, io, process, handle: Handle { id, job } })
    }

    /// Waits until the process ends. What it has started may live on. The call may be dropped and repeated.
    pub async fn wait(&mut self) -> Exit {
        let exit = self.process.wait().await;
        exit.ok().and_then(|exit| exit.code()).map_or(Exit::Lost, Exit::Code)
    }

    /// Takes out our ends of the stdio.
    pub fn take_io(&mut self) -> ChildIo {
        std::mem::replace(&mut self.io, ChildIo::Taken)
    }

    /// The job of the process.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl ChildInput {
    /// Writes all bytes. Waits while the process reads nothing.
    ///
    /// # Errors
    /// The system's error: the process reads no more.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// Ends the input.
    pub async fn close(mut self) {
        // A process that reads no more needs no end.
        let _ = self.0.shutdown().await;
    }
}

impl ChildOutput {
    /// Waits for output and appends it. Returns the number of bytes, 0 at the end. If the call is dropped, nothing is
    /// lost.
    ///
    /// # Errors
    /// The system's error; a pipe hardly has any.
    pub async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        buffer.reserve(MOST_PER_READ);
        self.0.read_buf(buffer).await
    }
}

impl Handle {
    /// The command's id.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Ends the job if the signal is one that ends programs; others are not there. Returns whether it had processes.
    ///
    /// # Errors
    /// When Windows refuses it.
    pub async fn signal_group(&self, signal: Signal) -> Result<bool, ProcessError> {
        let had_any = !self.members().await?.is_empty();
        if matches!(signal, Signal::Hangup | Signal::Terminate | Signal::Kill) {
            self.job.end().map_err(failed)?;
        }
        Ok(had_any)
    }

    /// Ends all processes of the job at once, whatever the grace. Returns the number of those that are left.
    ///
    /// # Errors
    /// When Windows refuses it.
    pub async fn stop(&self, _grace: Duration) -> Result<u32, ProcessError> {
        self.job.end().map_err(failed)?;
        let until = Instant::now() + ENDING;
        loop {
            let left = self.members().await?.len();
            if left == 0 || Instant::now() >= until {
                return Ok(u32::try_from(left).unwrap_or(u32::MAX));
            }
            sleep(LOOK).await;
        }
    }

    /// The ids of all processes of the job, sorted; about four thousand at most.
    ///
    /// # Errors
    /// When Windows does not tell.
    pub async fn members(&self) -> Result<Vec<u32>, ProcessError> {
        let mut members = self.job.members().map_err(failed)?;
        members.sort_unstable();
        Ok(members)
    }
}

fn failed(source: io::Error) -> ProcessError {
    ProcessError::Start { step: "its job object", source }
}

impl Signal {
    /// The signal's number, as other systems have it.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Quit => 3,
            Self::Kill => 9,
            Self::User1 => 10,
            Self::User2 => 12,
            Self::Terminate => 15,
            Self::Continue => 18,
            Self::Stop => 19,
        }
    }
}
