//! The identity of a caller, a client or an agent of a team, and of its connection.

use protocol::workspace::{Role, SessionId, TeamId};

/// The owner of a connection and its rights.
#[derive(Debug, Clone)]
pub struct Identity {
    /// For the audit log: a key's id, `workspace-token`, `admin-token`,
    /// `team:TEAM/SESSION`.
    pub who: String,
    /// The requests that the caller may send.
    pub role: Role,
    /// Set if the caller is an agent of a team that connects by itself. It may use its own team and
    /// nothing else.
    pub member: Option<Member>,
}

/// Identifies one connection of a client among all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// A session in its team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The team.
    pub team: TeamId,
    /// The session of a leader or a team worker.
    pub session: SessionId,
}
