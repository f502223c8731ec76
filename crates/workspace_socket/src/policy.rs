//! The policy of a request: one row of the table.

use protocol::workspace::{ProjectId, Role, SessionId, TeamId};

use crate::family::Family;

/// A row of `table`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) target: Target,
    pub(crate) role: Role,
    pub(crate) subject: Subject,
    pub(crate) family: Family,
    pub(crate) memory: Memory,
    pub(crate) audience: Audience,
}

/// The object of a request, which decides which member of a cluster serves it: the one that runs
/// the session, holds the project's files or keeps the team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The member that the client is connected to.
    Here,
    Session(SessionId),
    Project(ProjectId),
    Team(TeamId),
    /// The member with this id or name.
    Node(String),
}

/// The subject of a request. It decides whether a member of a team may send the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The connection itself: members of teams may send such a request, too.
    Connection,
    /// A team. A member may name its own team.
    Team(TeamId),
    /// A session in a team. A member may name itself.
    Member(TeamId, SessionId),
    /// Anything else, which is closed to members.
    Workspace,
}

/// How much memory a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Too little to be counted.
    Short,
    /// The answer may have this many bytes.
    Long(usize),
    /// The request itself is large, even when it is parsed, so it keeps its slot until it is done.
    Request,
}

/// The recipients of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Asker,
    /// The asker; and all clients, as an event. The asker must not get the message twice.
    Everyone,
}
