//! The errors of processes.

use std::{io, path::PathBuf};

use uuid::Uuid;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is no such program, or the interpreter that its first line names is missing.
    #[error("no program {program:?} is found; check its name, its interpreter, and PATH")]
    NotFound {
        /// The program in its requested form.
        program: PathBuf,
    },
    /// The command's user may not execute the program.
    #[error("{program:?} may not be executed by the user that it is to run as")]
    Permission {
        /// The program in its requested form.
        program: PathBuf,
    },
    /// The program could not be executed for another reason.
    #[error("{program:?} cannot be executed: {source}")]
    Execute {
        /// The program in its requested form.
        program: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The working directory is missing, is not a directory, or may not be entered by the command's
    /// user.
    #[error("the working directory {path:?} cannot be entered: {source}")]
    WorkingDir {
        /// The directory in its requested form.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The command with its arguments and its environment is too large.
    #[error(
        "the command takes {size} bytes with arguments and environment, more than the {limit} allowed"
    )]
    TooLarge {
        /// The size in bytes: of the whole command, or of its longest argument if the kernel
        /// refused the command.
        size: usize,
        /// The largest allowed size, in bytes.
        limit: usize,
    },
    /// A text of the command has a form that the kernel does not take.
    #[error(
        "{what} is not valid: it is empty, or holds a NUL or an equals sign where there may be none"
    )]
    InvalidText {
        /// The name of the text.
        what: &'static str,
    },
    /// The supervisor has as many sessions with processes as it may have.
    #[error("{limit} sessions have processes already, as many as may; end some first")]
    TooMany {
        /// The most sessions.
        limit: u32,
    },
    /// The session with this id still has processes.
    #[error("session {id} has processes already")]
    Duplicate {
        /// The session.
        id: Uuid,
    },
    /// The machine has no such user.
    #[error("there is no user {name:?} on this machine")]
    UnknownUser {
        /// The requested name.
        name: String,
    },
    /// The user exists, but no process may run as it.
    #[error("nothing may run as user {name:?}: {reason}")]
    MayNotBecome {
        /// The user.
        name: String,
        /// The reason.
        reason: &'static str,
    },
    /// Privileges could not be given up completely, so nothing was run.
    #[error("privileges could not be given up completely, so nothing was run: {source}")]
    Credentials {
        /// The error of the step that failed.
        source: io::Error,
    },
    /// A process could not be started, for a reason before the execution of its program.
    #[error("no process could be started ({step}): {source}")]
    Start {
        /// The step that failed.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The supervisor itself could not be started.
    #[error("the supervisor {program:?} could not be started: {source}")]
    Supervisor {
        /// The program that was started as the supervisor.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The supervisor of an earlier server could not be taken over.
    #[error(
        "the terminals and agents of an earlier server at {dir:?} cannot be taken over, and end soon: {source}"
    )]
    TakeOver {
        /// The directory of both servers.
        dir: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The supervisor has ended, and with it all its processes.
    #[error("the supervisor of processes has ended, and all of them with it")]
    SupervisorGone,
    /// An operation took longer than it may.
    #[error("{what} took longer than it may")]
    TimedOut {
        /// The operation.
        what: &'static str,
    },
    /// No process has this id, or the intended process has ended.
    #[error("process {pid} is gone")]
    NoSuchProcess {
        /// The process id.
        pid: u32,
    },
    /// The process id belongs to another process by now.
    #[error("process id {pid} belongs to another process by now")]
    PidReused {
        /// The process id.
        pid: u32,
    },
    /// A process could not be examined or signalled.
    #[error("process {pid}: {source}")]
    Process {
        /// The process id.
        pid: u32,
        /// The kernel's error.
        source: io::Error,
    },
}
