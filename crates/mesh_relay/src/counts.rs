//! Counts for metrics and health.

use std::collections::BTreeMap;

use protocol::mesh::relay::Code;

/// The counts of a mesh relay since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Open connections.
    pub connections: usize,
    /// Registered nodes.
    pub registered: usize,
    /// Open relay sessions.
    pub sessions: usize,
    /// Messages received from nodes.
    pub received: u64,
    /// Messages passed on from one node to another.
    pub frames: u64,
    /// The bytes of the messages in `frames`.
    pub bytes: u64,
    /// Messages sent to nodes: those passed on, and the mesh relay's own.
    pub sent: u64,
    /// Refusals, by reason.
    pub refused: BTreeMap<Code, u64>,
    /// Joins and leaves that were not reported to a node because of its limit.
    pub untold: u64,
    /// How often a sender had to wait for its receiver, or for its rate.
    pub waits: u64,
}

/// A node, as `/peers` shows it to anyone.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// The first 16 characters of its id.
    #[serde(rename = "nodeID")]
    pub node: String,
}
