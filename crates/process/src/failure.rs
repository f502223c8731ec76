//! Why a process could not be started: at which step, with which error of the kernel.

use std::{io, path::PathBuf};

use crate::{MAX_COMMAND, error::ProcessError, messages::Order};

/// A step on the way to a running program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

const STEPS: [Step; 15] = [
    Step::Limit,
    Step::Duplicate,
    Step::Ending,
    Step::ControlGroup,
    Step::Terminal,
    Step::Pipes,
    Step::Fork,
    Step::Session,
    Step::ProcessLimit,
    Step::Credentials,
    Step::Backstop,
    Step::WorkingDir,
    Step::Signals,
    Step::Execute,
    Step::Deadline,
];

/// The length of a failure's bytes.
pub(crate) const FAILURE_BYTES: usize = 5;

/// Where it failed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// What a child that could not become the program writes into the report pipe.
    pub(crate) fn to_bytes(self) -> [u8; FAILURE_BYTES] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        [self.step as u8, a, b, c, d]
    }

    pub(crate) fn from_bytes(bytes: [u8; FAILURE_BYTES]) -> Option<Self> {
        let [step, errno @ ..] = bytes;
        Some(Self { step: step.try_into().ok()?, errno: i32::from_le_bytes(errno) })
    }

    /// The error for who asked for `order`, of a supervisor that takes `limit` children.
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
            Step::Execute => match self.errno {
                libc::ENOENT | libc::ENOTDIR => ProcessError::NotFound { program: program() },
                libc::EACCES | libc::EPERM => ProcessError::Permission { program: program() },
                libc::E2BIG => ProcessError::TooLarge { size: order.largest(), limit: MAX_COMMAND },
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

impl From<Step> for u16 {
    fn from(step: Step) -> Self {
        step as Self
    }
}

impl TryFrom<u8> for Step {
    type Error = ();

    fn try_from(number: u8) -> Result<Self, ()> {
        STEPS.get(usize::from(number)).copied().ok_or(())
    }
}

impl Order {
    fn largest(&self) -> usize {
        self.args.iter().map(|arg| arg.len()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_back_from_its_bytes() {
        for (number, step) in STEPS.into_iter().enumerate() {
            assert_eq!(step as usize, number);
            let failure = Failure { step, errno: -7 };
            assert_eq!(Failure::from_bytes(failure.to_bytes()), Some(failure));
        }
        assert_eq!(Failure::from_bytes([15, 0, 0, 0, 0]), None);
    }
}
