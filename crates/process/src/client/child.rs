//! A process that the supervisor started, and the session behind it.

use std::{io, os::fd::OwnedFd, time::Duration};

use tokio::{net::unix::pipe, sync::watch};
use uuid::Uuid;

use super::{
    Supervisor,
    driver::{Reply, Started, Wanted},
};
use crate::{
    error::ProcessError,
    signal::{Exit, Signal},
    terminal::Terminal,
};

/// A process that the supervisor started. Dropping it stops nothing but what its terminal or pipes,
/// closed by that, mean to it.
#[derive(Debug)]
pub struct Child {
    /// Its process id, also that of its group and session.
    pub pid: u32,
    /// When it began, in clock ticks since the machine did.
    pub start_time: u64,
    /// What it reads from and writes to; to be taken out where others need it.
    pub io: ChildIo,
    exit: watch::Receiver<Option<Exit>>,
    handle: Handle,
}

/// The daemon's ends of a child's stdio.
#[derive(Debug)]
pub enum ChildIo {
    /// The master of its terminal.
    Terminal(Terminal),
    /// Three pipes.
    Pipes {
        /// What it reads.
        stdin: pipe::Sender,
        /// What it writes.
        stdout: pipe::Receiver,
        /// What it complains about.
        stderr: pipe::Receiver,
    },
    /// Taken out.
    Taken,
}

/// The session behind a child: its first process and all that came of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    supervisor: Supervisor,
    id: Uuid,
}

impl Child {
    pub(super) fn new(handle: Handle, started: Started) -> Result<Self, ProcessError> {
        let failed = |source| ProcessError::Start { step: "taking over its stdio", source };
        let io = ChildIo::new(started.ends).map_err(failed)?;
        let Started { pid, start_time, exit, .. } = started;
        Ok(Self { pid, start_time, io, exit, handle })
    }

    /// Waits until it ends. What it started may live on; so may its terminal, as long as they have it.
    /// Nothing is lost when the call is dropped.
    pub async fn wait(&mut self) -> Exit {
        let exit = self.exit.wait_for(Option::is_some).await;
        exit.ok().and_then(|exit| *exit).unwrap_or(Exit::Lost)
    }

    /// Takes out what it reads from and writes to.
    pub fn take_io(&mut self) -> ChildIo {
        std::mem::replace(&mut self.io, ChildIo::Taken)
    }

    /// The session behind it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl ChildIo {
    fn new(ends: Vec<OwnedFd>) -> io::Result<Self> {
        let mut ends = ends.into_iter();
        match (ends.next(), ends.next(), ends.next()) {
            (Some(master), None, None) => Ok(Self::Terminal(Terminal::new(master)?)),
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self::Pipes {
                stdin: pipe::Sender::from_owned_fd(stdin)?,
                stdout: pipe::Receiver::from_owned_fd(stdout)?,
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

    /// Sends a signal to the first process and its group; whether there was one.
    ///
    /// # Errors
    /// [`ProcessError::SupervisorGone`], [`ProcessError::TimedOut`].
    pub async fn signal_group(&self, signal: Signal) -> Result<bool, ProcessError> {
        let wanted = Wanted::Signal(self.id, signal);
        Ok(self.count(wanted, Duration::ZERO).await? > 0)
    }

    /// Stops all that belongs to the session: it is hung up, after half the grace asked to end, and
    /// after the other half killed; without any grace, killed at once. Returns as soon as nothing is
    /// left; how much is, after all that, which is what the kernel itself holds up.
    ///
    /// # Errors
    /// [`ProcessError::SupervisorGone`], in which case nothing is left either;
    /// [`ProcessError::TimedOut`].
    pub async fn stop(&self, grace: Duration) -> Result<u32, ProcessError> {
        self.count(Wanted::Stop(self.id, grace), grace).await
    }

    /// The process ids of all that belongs to the session now, sorted; some ten thousand at most.
    ///
    /// # Errors
    /// As for [`Handle::signal_group`].
    pub async fn members(&self) -> Result<Vec<u32>, ProcessError> {
        match self.supervisor.ask(Wanted::Members(self.id), Duration::ZERO).await? {
            Reply::Members(mut pids) => {
                pids.sort_unstable();
                Ok(pids)
            }
            _ => Err(ProcessError::SupervisorGone),
        }
    }

    async fn count(&self, wanted: Wanted, takes: Duration) -> Result<u32, ProcessError> {
        match self.supervisor.ask(wanted, takes).await? {
            Reply::Count(count) => Ok(count),
            _ => Err(ProcessError::SupervisorGone),
        }
    }
}
