//! The policy of a request: one row of the table.

use protocol::workspace::{Role, SessionId, TeamId};

use super::family::Family;

/// A row of `socket::table`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) role: Role,
    pub(super) subject: Subject,
    pub(super) family: Family,
    pub(super) memory: Memory,
    pub(super) audience: Audience,
}

/// The subject of a request, for members of teams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The connection itself: members may send it, too.
    Connection,
    /// A team. Members may name their own.
    Team(TeamId),
    /// A session's messages in a team. Members may name themselves.
    Member(TeamId, SessionId),
    /// Anything else, which is closed to members.
    Workspace,
}

/// How much memory a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// So little that nobody counts it.
    Short,
    /// The answer may have this many bytes.
    Long(usize),
    /// The request itself: it is still large once it is parsed, so it keeps its place.
    Request,
}

/// The recipients of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Asker,
    /// All clients are told the same message as an event. The asker must not hear it twice.
    Everyone,
}
