//! The id of a client's connection.

/// Identifies one connection of a client among all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);
