//! Findings about a database that several servers share, looked at from outside of a server.

/// The findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examination {
    /// Its version, as `150004`.
    pub version: i32,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Whether it is on another machine.
    pub is_elsewhere: bool,
    /// Whether the schema is there.
    pub has_schema: bool,
    /// Whether this user may make what is needed: the schema, or its tables.
    pub may_make: bool,
    /// Whether it is for reading only.
    pub is_read_only: bool,
    /// The version of the tables; `None`: there are none yet.
    pub tables: Option<i32>,
    /// The version that this program has.
    pub known_tables: i32,
    /// By how many seconds its clock is ahead of this machine's.
    pub clock_ahead_s: i64,
    /// Whether what one connection announces comes to another.
    pub announces: bool,
}
