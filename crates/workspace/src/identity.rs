//! The identity of an asker: a client, or an agent of a team.

use protocol::workspace::{Role, SessionId, TeamId};

/// The owner of a connection and its rights.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// For the audit log: a key's id, `workspace-token`, `admin-token`,
    /// `team:TEAM/SESSION`.
    pub(crate) who: String,
    pub(crate) role: Role,
    /// An agent of a team that speaks for itself; it may use its own team, and nothing else.
    pub(crate) member: Option<Member>,
}

/// A session in its team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) team: TeamId,
    pub(crate) session: SessionId,
}
