//! A process that the supervisor started, and the session behind it.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use tokio::{net::unix::pipe, sync::watch};
use uuid::Uuid;

pub use super::pipes::{ChildInput, ChildOutput};

use super::{
    Supervisor,
    driver::{Call, Reply, StartedChild},
};
use crate::{
    error::ProcessError,
    signal::{Exit, Signal},
    unix::{journal::Journal, terminal::Terminal},
};

/// A process that the supervisor started. Dropping this closes the process's terminal or pipes, and
/// stops nothing else.
#[derive(Debug)]
pub struct Child {
    /// The id of the process, its group and its session.
    pub pid: u32,
    /// The start of the process, in clock ticks since boot.
    pub start_time: u64,
    /// The daemon's ends of its stdio; see [`Child::take_io`].
    pub io: ChildIo,
    /// Its journal.
    pub journal: Arc<Journal>,
    exit: watch::Receiver<Option<Exit>>,
    handle: Handle,
}

/// The standard error of a process.
pub type ChildErrors = pipe::Receiver;

/// The daemon's ends of a child's stdio.
#[derive(Debug)]
pub enum ChildIo {
    /// The master of the child's terminal.
    Terminal(Terminal),
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

/// The session of a child: its first process and all descendants. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    supervisor: Supervisor,
    id: Uuid,
}

impl Child {
    pub(super) fn new(handle: Handle, started: StartedChild) -> Result<Self, ProcessError> {
        let failed = |source| ProcessError::Start { step: "taking over its stdio", source };
        let StartedChild { pid, start_time, exit, mut ends } = started;
        // The journal is the last descriptor of the message.
        let journal = ends.pop().ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let journal = Journal::open(journal).map_err(failed)?;
        let io = ChildIo::new(ends, &journal, &handle).map_err(failed)?;
        Ok(Self { pid, start_time, io, journal, exit, handle })
    }

    /// Waits until the process ends. Its descendants may live on and keep its terminal open. The
    /// call may be dropped and repeated.
    pub async fn wait(&mut self) -> Exit {
        let exit = self.exit.wait_for(Option::is_some).await;
        exit.ok().and_then(|exit| *exit).unwrap_or(Exit::Lost)
    }

    /// Takes out the daemon's ends of the stdio.
    pub fn take_io(&mut self) -> ChildIo {
        std::mem::replace(&mut self.io, ChildIo::Taken)
    }

    /// The session of the process.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl ChildIo {
    fn new(ends: Vec<OwnedFd>, journal: &Arc<Journal>, handle: &Handle) -> io::Result<Self> {
        let mut ends = ends.into_iter();
        match (ends.next(), ends.next(), ends.next()) {
            (Some(master), None, None) => Ok(Self::Terminal(Terminal::new(master, journal)?)),
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self::Pipes {
                stdin: ChildInput::new(stdin, journal, handle)?,
                stdout: ChildOutput::new(stdout, journal)?,
                stderr: pipe::Receiver::from_owned_fd(stderr)?,
            }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Handle {
    pub(super) fn new(supervisor: Supervisor, id: Uuid) -> Self {
        Self { supervisor, id }
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Sends a signal to the first process and its group. Returns whether there was such a group.
    ///
    /// # Errors
    /// [`ProcessError::SupervisorGone`], [`ProcessError::TimedOut`].
    pub async fn signal_group(&self, signal: Signal) -> Result<bool, ProcessError> {
        let wanted = Call::Signal(self.id, signal);
        Ok(self.count(wanted, Duration::ZERO).await? > 0)
    }

    /// Stops all processes of the session: with SIGHUP, after half the grace with SIGTERM, and
    /// after the other half with SIGKILL; without grace, with SIGKILL at once. Returns the number
    /// of processes that are left: 0 as soon as all have ended, otherwise those stuck in the
    /// kernel.
    ///
    /// # Errors
    /// [`ProcessError::SupervisorGone`], in which case no process is left either;
    /// [`ProcessError::TimedOut`].
    pub async fn stop(&self, grace: Duration) -> Result<u32, ProcessError> {
        self.count(Call::Stop(self.id, grace), grace).await
    }

    /// The ids of all processes of the session, sorted; about sixteen thousand at most.
    ///
    /// # Errors
    /// As for [`Handle::signal_group`].
    pub async fn members(&self) -> Result<Vec<u32>, ProcessError> {
        match self.supervisor.ask(Call::Members(self.id), Duration::ZERO).await? {
            Reply::Members(mut pids) => {
                pids.sort_unstable();
                Ok(pids)
            }
            _ => Err(ProcessError::SupervisorGone),
        }
    }

    /// Lets the supervisor close its own end of the session's input.
    pub(super) async fn close_input(&self) {
        if let Err(error) = self.count(Call::CloseInput(self.id), Duration::ZERO).await {
            tracing::debug!(%error, "an input cannot be closed");
        }
    }

    async fn count(&self, wanted: Call, takes: Duration) -> Result<u32, ProcessError> {
        match self.supervisor.ask(wanted, takes).await? {
            Reply::Count(count) => Ok(count),
            _ => Err(ProcessError::SupervisorGone),
        }
    }
}
