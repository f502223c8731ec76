//! The cluster's description for clients.

use serde::{Deserialize, Serialize};

/// `election_timeout_min_ms`. It has no meaning without elections, but clients still ask for it.
pub const ELECTION_TIMEOUT_MIN_MS: u64 = 3000;
/// `election_timeout_max_ms`, likewise.
pub const ELECTION_TIMEOUT_MAX_MS: u64 = 5000;
/// The only `role`.
pub const ROLE: &str = "leader";

/// The cluster as the asked daemon sees it (specification, "cluster_status").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The node that is asked.
    pub node_id: String,
    /// Always [`ROLE`]: the cluster has no leader.
    pub role: String,
    /// Always 0.
    pub term: u64,
    /// Always the node that is asked.
    pub leader_id: Option<String>,
    /// Where clients reach the node that is asked.
    pub leader_address: Option<String>,
    /// The name of the node that is asked, for people. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address of its peer port, for other members. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Faults and refusals in the cluster that its operator should know, the oldest first. Ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The other members.
    #[serde(default)]
    pub peers: Vec<ClusterMember>,
}

/// Another member of the cluster. The specification does not define its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterMember {
    /// Its id.
    pub node_id: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Where it is reached.
    pub address: Option<String>,
    /// Whether it is connected.
    #[serde(default)]
    pub connected: bool,
    /// The name of the member that carries the link to it, unless that is a direct one. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
}
