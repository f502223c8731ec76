//! The cluster, as clients ask for it and change it.

use base::Secret;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::connection::{exposed, secret};
use crate::workspace::{
    bounded::{maybe_peers, name},
    cluster::ClusterStatus,
};

/// `rename_node`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameNode {
    /// Its node id.
    #[serde(deserialize_with = "name")]
    pub node_id: String,
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: String,
}

/// `promote_node`, which has no effect: the cluster has no leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromoteNode {
    /// Its node id.
    #[serde(deserialize_with = "name")]
    pub node_id: String,
}

/// `update_cluster_config`. Absent fields stay unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateClusterConfig {
    /// The addresses of the other members.
    #[serde(default, deserialize_with = "maybe_peers")]
    pub peers: Option<Vec<String>>,
    /// The interval of heartbeats between members, in milliseconds.
    pub heartbeat_interval_ms: Option<u64>,
}

/// `cluster_join`: makes this machine a member of a cluster, by an invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterJoin {
    /// The code of an invitation.
    #[serde(serialize_with = "exposed", deserialize_with = "secret")]
    pub code: Secret,
}

/// `cluster_forget`: removes a machine that is lost or no longer wanted from the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterForget {
    /// Its node id or its name.
    #[serde(deserialize_with = "name")]
    pub node_id: String,
}

/// `cluster_revoke_invite`: withdraws an invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRevokeInvite {
    /// Its id.
    #[serde(deserialize_with = "name")]
    pub invite_id: String,
}

/// `cluster_invitation`: an invitation that was made. It is good for one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterInvitation {
    /// Its id, which is no secret.
    pub invite_id: String,
    /// The code by which a machine joins.
    #[serde(serialize_with = "exposed", deserialize_with = "secret")]
    pub code: Secret,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The addresses at which the joining machine can reach this one.
    pub addresses: Vec<String>,
}

/// `cluster_invite_list`: the invitations of this machine that may still be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterInviteList {
    /// By id.
    pub invites: Vec<OpenInvite>,
}

/// An invitation that may still be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenInvite {
    /// Its id.
    pub invite_id: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// `cluster_status`, the reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatusReply {
    /// How the cluster looks from here.
    pub cluster: ClusterStatus,
}

/// `cluster_config`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterConfig {
    /// The node that is asked.
    pub node_id: String,
    /// Where other members reach it.
    pub peer_port: u16,
    /// The addresses of the other members.
    pub peers: Vec<String>,
    /// The interval of heartbeats between members, in milliseconds.
    pub heartbeat_interval_ms: u64,
    /// [`crate::workspace::cluster::ELECTION_TIMEOUT_MIN_MS`].
    pub election_timeout_min_ms: u64,
    /// [`crate::workspace::cluster::ELECTION_TIMEOUT_MAX_MS`].
    pub election_timeout_max_ms: u64,
    /// Always none: no quorum is needed.
    pub min_quorum: Option<u32>,
    /// The addresses that it advertises to clients.
    pub advertise_addresses: Vec<String>,
}

/// `cluster_action_ack`: the result of a change of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterActionAck {
    /// The `type` of the request.
    pub action: String,
    /// Whether it was done.
    pub ok: bool,
    /// The result, or why it was not done, for people.
    pub message: String,
}
