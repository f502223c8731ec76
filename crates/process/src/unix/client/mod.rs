//! The daemon's side of the supervisor.
//!
//! - [`Supervisor`]: starts the supervisor, and asks it to start and stop processes
//! - [`Child`], [`Handle`]: a process that the supervisor started, and its session
//! - [`Keep`], [`TakenOver`]: how sessions outlive a daemon, and how the next one takes them over
//! - `driver`: the task that talks to the supervisor

mod child;
mod driver;
mod pipes;
mod takeover;

use std::{
    ffi::OsStr,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio as ChildStdio,
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time,
};

use crate::{
    command::Command,
    error::ProcessError,
    unix::{
        channel,
        kernel::ourselves,
        messages::{Event, KeepOrder, Order, Request},
    },
};
pub use child::{Child, ChildErrors, ChildInput, ChildIo, ChildOutput, Handle};
use driver::{Ask, Call, Driver, Helper, Reply};
pub(crate) use takeover::SOCKET;
pub use takeover::{HeldProcess, Keep, TakenOver};

/// The hidden command with which a supervisor is started.
const COMMAND: &str = "supervisor";
/// The most requests that wait for the driver.
const WAITING: usize = 64;
const LONGEST_START: Duration = Duration::from_secs(10);
/// How long an answer may take beyond the grace of the request.
const LONGEST_ANSWER: Duration = Duration::from_secs(15);

/// The limits and options of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most sessions with processes at once.
    pub max_children: u32,
    /// Whether to create control groups where possible.
    pub control_groups: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_children: 4096, control_groups: true }
    }
}

/// The helper that is the parent of all processes. Cheap to clone. When the last clone, child and
/// handle are dropped, the supervisor ends, and all its processes with it.
#[derive(Debug, Clone)]
pub struct Supervisor {
    asks: mpsc::Sender<Ask>,
    alive: watch::Receiver<bool>,
    pid: u32,
}

impl Supervisor {
    /// Starts a supervisor: a program that calls [`supervisor::main`](crate::supervisor::main) if
    /// it gets `args`. Needs a runtime, which must outlive the supervisor.
    ///
    /// # Errors
    /// [`ProcessError::Supervisor`] when the program cannot be started or is not a supervisor.
    pub async fn start(program: &Path, args: &[&str]) -> Result<Self, ProcessError> {
        Self::start_with(program, args, Limits::default()).await
    }

    /// Starts this binary as the supervisor, with its hidden command.
    ///
    /// # Errors
    /// As for [`Supervisor::start`].
    pub async fn start_ourselves(limits: Limits) -> Result<Self, ProcessError> {
        Self::start_ourselves_keeping(limits, None).await
    }

    /// The same, and the sessions outlive this daemon.
    ///
    /// # Errors
    /// As for [`Supervisor::start`].
    pub async fn start_ourselves_keeping(
        limits: Limits,
        keep: Option<&Keep>,
    ) -> Result<Self, ProcessError> {
        let program = ourselves().map_err(|source| ProcessError::Supervisor {
            program: PathBuf::from(COMMAND),
            source,
        })?;
        Self::start_keeping(&program, &[COMMAND], limits, keep).await
    }

    /// Starts a supervisor with these limits.
    ///
    /// # Errors
    /// As for [`Supervisor::start`].
    pub async fn start_with(
        program: &Path,
        args: &[&str],
        limits: Limits,
    ) -> Result<Self, ProcessError> {
        Self::start_keeping(program, args, limits, None).await
    }

    /// Starts a supervisor with these limits, whose sessions outlive this daemon as `keep` says.
    ///
    /// # Errors
    /// As for [`Supervisor::start`].
    pub async fn start_keeping(
        program: &Path,
        args: &[&str],
        limits: Limits,
        keep: Option<&Keep>,
    ) -> Result<Self, ProcessError> {
        let failed = |source| ProcessError::Supervisor { program: PathBuf::from(program), source };
        let (ours, theirs) = channel::pair().map_err(failed)?;
        let helper = helper(program, args, ChildStdio::from(theirs)).map_err(failed)?;
        let helper = Helper::Started(Box::new(helper));
        let (supervisor, _none) = Self::begin(ours, helper, limits, keep).await?;
        Ok(supervisor)
    }

    /// Begins to talk to a supervisor. Returns the processes that it has already.
    async fn begin(
        socket: OwnedFd,
        helper: Helper,
        limits: Limits,
        keep: Option<&Keep>,
    ) -> Result<(Self, Vec<HeldProcess>), ProcessError> {
        let program = PathBuf::from(helper.name());
        let failed = |source| ProcessError::Supervisor { program: program.clone(), source };
        let (pid, is_new) = (helper.pid(), helper.is_new());
        let (sender, asks) = mpsc::channel(WAITING);
        let (living, alive) = watch::channel(true);
        let mut driver = Driver::new(socket, helper, asks, living, limits).map_err(failed)?;
        let ready = time::timeout(LONGEST_START, driver.ready(keep, is_new)).await;
        let held = ready.map_err(|_| failed(io::ErrorKind::TimedOut.into()))?.map_err(failed)?;
        tokio::spawn(driver.run());
        let supervisor = Self { asks: sender, alive, pid };
        let child = |(id, started)| {
            let child = Child::new(Handle::new(supervisor.clone(), id), started);
            child.inspect_err(|error| tracing::error!(%error, %id, "a process is lost")).ok()
        };
        let held = held
            .into_iter()
            .filter_map(|(id, started)| Some(HeldProcess { id, child: child((id, started))? }));
        Ok((supervisor.clone(), held.collect()))
    }

    /// Starts a command. If this call is dropped before it returns, the process is stopped.
    ///
    /// # Errors
    /// The [`ProcessError`]s about the command, its user, its working
    /// directory or its program; [`ProcessError::TooMany`], [`ProcessError::Duplicate`];
    /// [`ProcessError::SupervisorGone`].
    pub async fn spawn(&self, command: Command) -> Result<Child, ProcessError> {
        // Here and not in the supervisor, whose errors have no words.
        command.check()?;
        if let Some(user) = &command.run_as {
            user.check()?;
        }
        let order = Order::from(command);
        let id = order.id;
        match self.ask(Call::Spawn(Box::new(order)), Duration::ZERO).await? {
            Reply::Started(started) => Child::new(Handle::new(self.clone(), id), *started),
            _ => Err(ProcessError::SupervisorGone),
        }
    }

    /// Whether the supervisor lives. If not, all its processes are dead or dying.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        *self.alive.borrow() && !self.asks.is_closed()
    }

    /// Waits until the supervisor has ended.
    pub async fn ended(&self) {
        let mut alive = self.alive.clone();
        // An error means that the driver is gone. The driver outlives the supervisor.
        let _ = alive.wait_for(|alive| !alive).await;
    }

    /// The supervisor's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops all sessions, each with this grace, then ends all other descendants of the supervisor,
    /// and then the supervisor. Returns when all have ended, or at a deadline.
    pub async fn shutdown(&self, grace: Duration) {
        let reply = self.ask(Call::Shutdown(grace), grace).await;
        if reply.is_ok() {
            let _ = time::timeout(LONGEST_ANSWER, self.ended()).await;
        }
    }

    /// Leaves the supervisor with all sessions to the next daemon, if it keeps them. Nothing may be read
    /// from them any more.
    pub async fn detach(&self) {
        let _gone = self.ask(Call::Detach, Duration::ZERO).await;
        self.ended().await;
    }

    async fn ask(&self, wanted: Call, takes: Duration) -> Result<Reply, ProcessError> {
        let (reply, answer) = oneshot::channel();
        let exchange = async {
            self.asks
                .send(Ask { wanted, reply })
                .await
                .map_err(|_| ProcessError::SupervisorGone)?;
            answer.await.map_err(|_| ProcessError::SupervisorGone)?
        };
        let late = ProcessError::TimedOut { what: "an answer of the supervisor" };
        time::timeout(LONGEST_ANSWER + takes, exchange).await.unwrap_or(Err(late))
    }
}

/// Starts the helper. It gets an empty environment, since the daemon's may hold secrets.
fn helper(
    program: &Path,
    args: &[impl AsRef<OsStr>],
    socket: ChildStdio,
) -> io::Result<tokio::process::Child> {
    let mut command = tokio::process::Command::new(program);
    command.args(args).env_clear().stdin(socket).stdout(ChildStdio::null());
    command.spawn()
}

impl Limits {
    fn order(self, keep: Option<&Keep>) -> Request {
        Request::Configure {
            max_children: self.max_children,
            control_groups: self.control_groups,
            keep: keep.map(KeepOrder::from),
        }
    }
}

fn answers(event: &Event) -> Option<u64> {
    match event {
        Event::Started { request, .. }
        | Event::Failed { request, .. }
        | Event::Done { request, .. }
        | Event::Members { request, .. } => Some(*request),
        Event::Ready { .. } | Event::Exited { .. } | Event::Held { .. } | Event::AllHeld => None,
    }
}
