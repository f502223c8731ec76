//! The reasons why there is no status or diff. The texts are shown to people.

use std::{io, path::PathBuf, time::Duration};

use super::status::Unreadable;

/// The reason why there is no status or diff. It is not an error to ask for the status of a
/// directory without a repository.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git is not installed.
    #[error("git is not installed, or not on PATH")]
    Missing,
    /// git does not start.
    #[error("git could not be started: {0}")]
    Start(#[source] io::Error),
    /// git's output could not be read.
    #[error("git could not be read: {0}")]
    Read(#[source] io::Error),
    /// git took too long and was ended.
    #[error("git took longer than {} s and was ended", .0.as_secs_f32())]
    TimedOut(Duration),
    /// git's output was too long, and git was ended.
    #[error("git's answer is too large: more than {limit} bytes")]
    TooLarge {
        /// The most bytes that are allowed.
        limit: usize,
    },
    /// Other requests for the repository took too long.
    #[error("git is busy with other requests for this repository; try again")]
    Busy,
    /// git failed.
    #[error("git failed: {0}")]
    Failed(String),
    /// A diff needs a repository.
    #[error("the project is not in a git repository")]
    NoRepository,
    /// The repository's configuration places its work tree somewhere else.
    #[error(
        "the repository's work tree is {}, which the project is not in; unset core.worktree",
        .0.display()
    )]
    Elsewhere(PathBuf),
    /// The repository has a filter whose name cannot be overridden.
    #[error("the repository configures a filter that cannot be switched off: {0}")]
    Filter(String),
    /// git's output has an unknown form.
    #[error("git's answer cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
}
