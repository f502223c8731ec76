//! Findings about a database that several servers share, when it is looked at without a running server.

/// The findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examination {
    /// The version of PostgreSQL, such as `150004`.
    pub version: i32,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Whether it is on another machine.
    pub is_elsewhere: bool,
    /// Whether the schema is there.
    pub has_schema: bool,
    /// Whether this user may make what is needed: the schema, or its tables.
    pub may_make: bool,
    /// Whether it can only be read.
    pub is_read_only: bool,
    /// The version of the tables; `None`: there are none yet.
    pub tables: Option<i32>,
    /// The version of the tables that this program knows.
    pub known_tables: i32,
    /// By how many seconds its clock is ahead of this machine's.
    pub clock_ahead_s: i64,
    /// Whether one connection hears what another announces.
    pub announces: bool,
}
