//! Why a request is refused, in words for the caller.

use protocol::workspace::{ProjectId, Role, SessionId, TeamId};
use store::StoreError;
use tokio::task;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No session has this id.
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    /// No project has this id.
    #[error("there is no project {0}")]
    UnknownProject(ProjectId),
    /// No team has this id.
    #[error("there is no team {0}")]
    UnknownTeam(TeamId),
    /// The session has ended.
    #[error("the session has ended: {0}")]
    Ended(String),
    /// The client's role does not allow the request.
    #[error("{what} needs the scope workspace:{}", .needed.as_str())]
    Role {
        /// The request.
        what: &'static str,
        /// The role that allows it.
        needed: Role,
    },
    /// A bound is reached.
    #[error("there are {most} {what} already, which is the most there may be")]
    TooMany {
        /// The kind of things that are bounded.
        what: &'static str,
        /// The bound.
        most: usize,
    },
    /// The request makes no sense here.
    #[error("{0}")]
    Invalid(String),
    /// The attempt failed.
    #[error("{0}")]
    Failed(String),
    /// The change cannot be stored.
    #[error("it cannot be written down")]
    Store(#[from] StoreError),
}

impl Refusal {
    /// [`Refusal::Invalid`] with these words.
    pub fn invalid(words: impl Into<String>) -> Self {
        Self::Invalid(words.into())
    }

    /// A failure, with all its causes.
    pub fn failed(error: &dyn std::error::Error) -> Self {
        Self::Failed(base::error::chain(error))
    }
}

/// Runs blocking work on a thread that may block.
///
/// # Errors
/// Those of the work. A panic in it is a failure.
pub async fn blocking<T: Send + 'static, E: Into<Refusal> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Refusal> {
    let done = task::spawn_blocking(work).await;
    done.map_err(|error| Refusal::failed(&error))?.map_err(E::into)
}
