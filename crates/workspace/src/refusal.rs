//! Why a request is not met, in words for the caller.

use protocol::workspace::{ProjectId, Role, SessionId, TeamId};
use store::StoreError;

/// Why a request is not met.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// Nobody has this session.
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    /// Nobody has this project.
    #[error("there is no project {0}")]
    UnknownProject(ProjectId),
    /// Nobody has this team.
    #[error("there is no team {0}")]
    UnknownTeam(TeamId),
    /// The session has ended.
    #[error("the session has ended: {0}")]
    Ended(String),
    /// It is not for this client.
    #[error("{what} needs the scope workspace:{}", .needed.as_str())]
    Role {
        /// The request.
        what: &'static str,
        needed: Role,
    },
    /// A bound is reached.
    #[error("there are {most} {what} already, which is the most there may be")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// The request makes no sense here.
    #[error("{0}")]
    Invalid(String),
    /// It was tried, and did not work.
    #[error("{0}")]
    Failed(String),
    /// It cannot be kept.
    #[error("it cannot be written down")]
    Store(#[from] StoreError),
}

impl Refusal {
    /// Something that makes no sense, in words.
    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::Invalid(words.into())
    }

    /// A failure, with all its causes.
    pub(crate) fn failed(error: &dyn std::error::Error) -> Self {
        Self::Failed(base::error::chain(error))
    }
}
