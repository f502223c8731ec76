//! Why git could not be asked. The texts are shown to people.

use std::{io, path::PathBuf, time::Duration};

use super::status::Unreadable;

/// Why there is no status or diff. That a directory is in no repository is none of these for a
/// status.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git is not installed, or not on PATH")]
    Missing,
    /// It is there, and does not start.
    #[error("git could not be started: {0}")]
    Start(#[source] io::Error),
    /// It was started, and its output could not be read.
    #[error("git could not be read: {0}")]
    Read(#[source] io::Error),
    /// It took too long and was ended.
    #[error("git took longer than {} s and was ended", .0.as_secs_f32())]
    TimedOut(Duration),
    /// It said too much and was ended.
    #[error("git's answer is too large: more than {limit} bytes")]
    TooLarge {
        /// How many bytes it may have.
        limit: usize,
    },
    /// Others are asking the same, and have been for too long.
    #[error("git is busy with other requests for this repository; try again")]
    Busy,
    /// It failed.
    #[error("git failed: {0}")]
    Failed(String),
    /// There is no repository to show a diff of.
    #[error("the project is not in a git repository")]
    NoRepository,
    /// The repository says that its files are somewhere else.
    #[error(
        "the repository's work tree is {}, which the project is not in; unset core.worktree",
        .0.display()
    )]
    Elsewhere(PathBuf),
    /// The repository names a filter in a way that cannot be switched off.
    #[error("the repository configures a filter that cannot be switched off: {0}")]
    Filter(String),
    /// It said what cannot be read.
    #[error("git's answer cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
}
