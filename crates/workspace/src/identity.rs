//! The identity of a caller: a client, or an agent of a team.

use protocol::workspace::{Role, SessionId, TeamId};

/// The owner of a connection and its rights.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// For the audit log: a key's id, `workspace-token`, `admin-token`,
    /// `team:TEAM/SESSION`.
    pub(crate) who: String,
    pub(crate) role: Role,
    /// Set if the caller is an agent of a team that connects by itself. It may use its own team and
    /// nothing else.
    pub(crate) member: Option<Member>,
}

/// A session in its team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) team: TeamId,
    pub(crate) session: SessionId,
}
