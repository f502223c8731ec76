//! Starts commands. The supervisor of Linux and macOS is a process; here it is a list of job objects, which Windows ends with
//! this process.

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio as ChildStdio,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use super::{
    child::{Child, NO_WINDOW},
    job::Job,
};
use crate::{
    command::{Command, Stdio},
    error::ProcessError,
};

/// The limits of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most commands with processes at once.
    pub max_children: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_children: 4096 }
    }
}

/// Starts commands, and ends them with itself. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Supervisor {
    limits: Limits,
    jobs: Arc<Mutex<Vec<Weak<Job>>>>,
}

impl Supervisor {
    /// One that starts commands itself: no helper is needed, so the program is not started.
    ///
    /// # Errors
    /// None; elsewhere there are.
    pub async fn start(_program: &Path, _args: &[&str]) -> Result<Self, ProcessError> {
        Ok(Self::new(Limits::default()))
    }

    /// One with these limits.
    ///
    /// # Errors
    /// None; elsewhere there are.
    pub async fn start_ourselves(limits: Limits) -> Result<Self, ProcessError> {
        Ok(Self::new(limits))
    }

    fn new(limits: Limits) -> Self {
        Self { limits, jobs: Arc::default() }
    }

    /// Starts a command with pipes. Needs a runtime.
    ///
    /// # Errors
    /// The [`ProcessError`]s about the command and its program; [`ProcessError::TooMany`].
    pub async fn spawn(&self, command: Command) -> Result<Child, ProcessError> {
        command.check()?;
        refuse(&command)?;
        let job = Arc::new(Job::new().map_err(at("making its job object"))?);
        self.keep(&job)?;
        let program = PathBuf::from(&command.program);
        let mut process =
            prepared(&command).spawn().map_err(|error| not_started(program, error))?;
        // One that has ended already has no handle, and nothing to end.
        if let Some(handle) = process.raw_handle()
            && let Err(error) = job.add(handle)
        {
            // It would outlive this process.
            let _ = process.start_kill();
            return Err(at("entering its job object")(error));
        }
        let lost = || at("taking over its stdio")(io::ErrorKind::InvalidData.into());
        Child::new(process, command.id, job).ok_or_else(lost)
    }

    fn keep(&self, job: &Arc<Job>) -> Result<(), ProcessError> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|job| job.strong_count() > 0);
        if jobs.len() >= self.limits.max_children as usize {
            return Err(ProcessError::TooMany { limit: self.limits.max_children });
        }
        jobs.push(Arc::downgrade(job));
        Ok(())
    }

    /// Whether it lives: it does as long as this process.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        true
    }

    /// Ends all commands at once, whatever the grace.
    pub async fn shutdown(&self, _grace: Duration) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        for job in jobs.iter().filter_map(Weak::upgrade) {
            if let Err(error) = job.end() {
                tracing::warn!(%error, "a command cannot be ended");
            }
        }
    }
}

/// Refuses what only other systems can do.
fn refuse(command: &Command) -> Result<(), ProcessError> {
    if let Some(user) = &command.run_as {
        let reason = "on Windows all runs as the user of the server";
        return Err(ProcessError::MayNotBecome { name: user.name.clone(), reason });
    }
    match command.stdio {
        Stdio::Pipes => Ok(()),
        Stdio::Terminal { .. } => Err(at("making its terminal")(io::ErrorKind::Unsupported.into())),
    }
}

fn prepared(command: &Command) -> tokio::process::Command {
    let mut prepared = tokio::process::Command::new(&command.program);
    prepared.args(&command.args).env_clear().envs(command.env.iter().map(|(n, v)| (n, v)));
    prepared.current_dir(&command.working_dir).creation_flags(NO_WINDOW);
    prepared.stdin(ChildStdio::piped()).stdout(ChildStdio::piped()).stderr(ChildStdio::piped());
    prepared
}

fn not_started(program: PathBuf, source: io::Error) -> ProcessError {
    match source.kind() {
        io::ErrorKind::NotFound => ProcessError::NotFound { program },
        io::ErrorKind::PermissionDenied => ProcessError::Permission { program },
        _ => ProcessError::Execute { program, source },
    }
}

fn at(step: &'static str) -> impl Fn(io::Error) -> ProcessError {
    move |source| ProcessError::Start { step, source }
}

/// Ends the process: no helper is started here.
pub fn main() -> ! {
    std::process::exit(1)
}
