//! What can go wrong with processes.

use std::{io, path::PathBuf};

use uuid::Uuid;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is no such program, or the interpreter that its first line names is missing.
    #[error("no program {program:?} is found; check its name, its interpreter, and PATH")]
    NotFound {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The program may not be executed by the user that is to run it.
    #[error("{program:?} may not be executed by the user that it is to run as")]
    Permission {
        /// As it was asked for.
        program: PathBuf,
    },
    /// The program could not be executed for another reason.
    #[error("{program:?} cannot be executed: {source}")]
    Execute {
        /// As it was asked for.
        program: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The working directory is missing, not a directory, or closed to the user that is to run in it.
    #[error("the working directory {path:?} cannot be entered: {source}")]
    WorkingDir {
        /// As it was asked for.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Arguments and environment are too large.
    #[error(
        "the command takes {size} bytes with arguments and environment, more than the {limit} allowed"
    )]
    TooLarge {
        /// The size of all, in bytes.
        size: usize,
        /// The most that is allowed, in bytes.
        limit: usize,
    },
    /// A text holds what the kernel cannot take.
    #[error(
        "{what} is not valid: it is empty, or holds a NUL or an equals sign where there may be none"
    )]
    InvalidText {
        /// Which text.
        what: &'static str,
    },
    /// As many children run as may.
    #[error("{limit} sessions have processes already, as many as may; end some first")]
    TooMany {
        /// The limit.
        limit: u32,
    },
    /// A session of this id has processes still.
    #[error("session {id} has processes already")]
    Duplicate {
        /// The session.
        id: Uuid,
    },
    /// The system has no such user.
    #[error("there is no user {name:?} on this machine")]
    UnknownUser {
        /// As it was asked for.
        name: String,
    },
    /// The user exists, but nothing may be run as it.
    #[error("nothing may run as user {name:?}: {reason}")]
    MayNotBecome {
        /// The user.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// Privileges could not be given up completely, so nothing was run.
    #[error("privileges could not be given up completely, so nothing was run: {source}")]
    Credentials {
        /// What went wrong.
        source: io::Error,
    },
    /// A process could not be started, before its program came into play.
    #[error("no process could be started ({step}): {source}")]
    Start {
        /// What was being done.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The supervisor itself could not be started.
    #[error("the supervisor {program:?} could not be started: {source}")]
    Supervisor {
        /// The program that was to be it.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The supervisor has ended, and with it all its processes.
    #[error("the supervisor of processes has ended, and all of them with it")]
    SupervisorGone,
    /// Something took longer than it may.
    #[error("{what} took longer than it may")]
    TimedOut {
        /// What.
        what: &'static str,
    },
    /// No process has this id, or it is another than was meant.
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
    /// A process could not be looked at or signalled.
    #[error("process {pid}: {source}")]
    Process {
        /// The process id.
        pid: u32,
        /// The kernel's reason.
        source: io::Error,
    },
}
