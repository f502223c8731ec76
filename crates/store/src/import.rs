//! Records that a server takes along from its own file into a database that several servers share.

use crate::{Action, InvitationRecord, KeyRecord, PageSessionRecord, UsageEntry};

/// The records that are taken along at once.
#[derive(Debug, Clone, Default)]
pub struct OwnRecords {
    /// Keys, revoked ones included.
    pub keys: Vec<KeyRecord>,
    /// Invitations that are open.
    pub invitations: Vec<InvitationRecord>,
    /// Page sessions that have not expired.
    pub page_sessions: Vec<PageSessionRecord>,
}

/// Rows with their numbers, the oldest first.
pub type Numbered<T> = Vec<(i64, T)>;

/// Rows of usage.
pub type NumberedUsage = Numbered<UsageEntry>;

/// Rows of the audit log.
pub type NumberedActions = Numbered<Action>;

/// How many records or rows were taken, and how many were there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Those that were taken now, or that a dry run would have taken.
    pub new: u64,
    /// Those that were there already.
    pub known: u64,
}

/// The records that were taken of each table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Keys.
    pub keys: Taken,
    /// Invitations.
    pub invitations: Taken,
    /// Page sessions.
    pub page_sessions: Taken,
    /// Rows of usage.
    pub usage: Taken,
    /// Rows of the audit log.
    pub audit: Taken,
}
