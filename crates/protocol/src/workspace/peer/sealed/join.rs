//! How a machine joins by an invitation: `welcome`, `not_invited`; and a new secret of the
//! cluster: `new_token`.

use base::{NodeId, Secret};
use serde::{Deserialize, Serialize};

use crate::workspace::{
    bounded::{addresses, few_of, name, text},
    client::connection::{exposed, secret},
    limits::{BARRED_MAX, MEMBERS_MAX, REASON_MAX},
};

/// `welcome`: the invited machine is a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The secret of the cluster.
    #[serde(serialize_with = "exposed", deserialize_with = "secret")]
    pub cluster_token: Secret,
    /// When the secret was made, in milliseconds since 1970; 0 for one that people chose.
    #[serde(default)]
    pub since_ms: u64,
    /// The members, the sender among them.
    #[serde(deserialize_with = "few_of::<_, _, MEMBERS_MAX>")]
    pub members: Vec<MemberFacts>,
}

/// `not_invited`: the invitation was already used or withdrawn, or is too old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotInvited {
    /// Why, for people.
    #[serde(deserialize_with = "text::<_, REASON_MAX>")]
    pub message: String,
}

/// `new_token`: the cluster has another secret from now on, unless the receiver has a newer one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewToken {
    /// The secret of the cluster.
    #[serde(serialize_with = "exposed", deserialize_with = "secret")]
    pub cluster_token: Secret,
    /// When the secret was made, in milliseconds since 1970. It is always later than for the secret
    /// before it.
    pub since_ms: u64,
    /// The key of the machine that made it; none if that machine is leaving, and does not keep the
    /// secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<NodeId>,
    /// The keys of machines that were removed, to which nobody passes the secret on.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "few_of::<_, _, BARRED_MAX>"
    )]
    pub without: Vec<NodeId>,
}

/// The facts that the others need to know about a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// Its id.
    #[serde(deserialize_with = "name")]
    pub node_id: String,
    /// Its public key.
    pub key: NodeId,
    /// Its name, for people.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Where it is reached.
    #[serde(default, deserialize_with = "addresses")]
    pub addresses: Vec<String>,
}
