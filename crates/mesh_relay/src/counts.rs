//! Counts for metrics and health.

use std::collections::BTreeMap;

use protocol::mesh::relay::Code;

/// The counts of a relay since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections that stand.
    pub connections: usize,
    /// Nodes that are registered.
    pub registered: usize,
    /// Relay sessions that are open.
    pub sessions: usize,
    /// Messages that nodes sent.
    pub received: u64,
    /// Messages passed on from one node to another.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages sent to nodes, passed on or the relay's own.
    pub sent: u64,
    /// Refusals, by reason.
    pub refused: BTreeMap<Code, u64>,
    /// Joins and leaves that were not reported to a node because of its limit.
    pub untold: u64,
    /// How often a sender had to wait for its receiver, or for its rate.
    pub waits: u64,
    /// Messages lost on their way through the relay. There is no such way: this stays 0.
    pub dropped: u64,
}

/// A node, as `/peers` shows it to everybody.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// The first 16 characters of its id.
    #[serde(rename = "nodeID")]
    pub node: String,
}
