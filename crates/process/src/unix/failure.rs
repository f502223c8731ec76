//! The failure to start a process: its step, and the error of the kernel.

use std::{io, path::PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{MAX_COMMAND, error::ProcessError, unix::messages::Order};

/// A step on the way to a running program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Limit,
    Duplicate,
    Ending,
    ControlGroup,
    Terminal,
    Pipes,
    Fork,
    Session,
    ProcessLimit,
    Credentials,
    Backstop,
    WorkingDir,
    Signals,
    Execute,
    Deadline,
}

/// The failed step and its error. A child that could not become its program writes this into the
/// report pipe, and the daemon hears the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: i32,
}

impl Failure {
    pub(crate) fn at(step: Step) -> impl Fn(io::Error) -> Self + Copy {
        move |error| Self { step, errno: error.raw_os_error().unwrap_or(0) }
    }

    pub(crate) fn plain(step: Step) -> Self {
        Self { step, errno: 0 }
    }

    /// The error for the caller of `order`. `limit` is the most children that the supervisor takes.
    pub(crate) fn into_error(self, order: &Order, limit: u32) -> ProcessError {
        let source = io::Error::from_raw_os_error(self.errno);
        let program = || PathBuf::from(&order.program);
        let start = |step, source| ProcessError::Start { step, source };
        match self.step {
            Step::Limit => ProcessError::TooMany { limit },
            Step::Duplicate => ProcessError::Duplicate { id: order.id },
            Step::Ending => ProcessError::SupervisorGone,
            Step::Credentials => ProcessError::Credentials { source },
            Step::WorkingDir => {
                ProcessError::WorkingDir { path: PathBuf::from(&order.working_dir), source }
            }
            Step::Execute => match Errno::from_raw_os_error(self.errno) {
                Errno::NOENT | Errno::NOTDIR => ProcessError::NotFound { program: program() },
                Errno::ACCESS | Errno::PERM => ProcessError::Permission { program: program() },
                Errno::TOOBIG => {
                    ProcessError::TooLarge { size: order.largest(), limit: MAX_COMMAND }
                }
                _ => ProcessError::Execute { program: program(), source },
            },
            Step::Deadline => ProcessError::TimedOut { what: "starting a process" },
            Step::ControlGroup => start("entering its control group", source),
            Step::Terminal => start("making its terminal", source),
            Step::Pipes => start("making its pipes", source),
            Step::Fork => start("making a process", source),
            Step::Session => start("making its session", source),
            Step::ProcessLimit => start("limiting its processes", source),
            Step::Backstop => start("tying it to the supervisor", source),
            Step::Signals => start("setting its signals", source),
        }
    }
}

impl Order {
    fn largest(&self) -> usize {
        self.args.iter().map(|arg| arg.len()).max().unwrap_or(0)
    }
}
