//! The first message of each end of a link between members: `peer_hello` and `peer_hello_ack`; and names of members.

use base::Secret;
use serde::{Deserialize, Deserializer, Serialize};

use super::lenient::{Zero, any, name, needed_name, needed_node, or_default, words};
use crate::workspace::client::connection::exposed;

/// `peer_hello`: the first message of the end that dialled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerHello {
    /// The id of the end that dialled.
    #[serde(deserialize_with = "needed_node")]
    pub node_id: String,
    /// The secret of the cluster; empty when the message has none. It stays hidden when the message
    /// is logged.
    #[serde(default = "no_token", serialize_with = "exposed", deserialize_with = "token")]
    pub cluster_token: Secret,
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Its name, for people.
    #[serde(default, deserialize_with = "name")]
    pub display_name: Option<String>,
}

/// `peer_hello_ack`: the answer of the end that was dialled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerHelloAck {
    /// The id of the end that was dialled.
    #[serde(deserialize_with = "needed_node")]
    pub node_id: String,
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Whether the dialling end is accepted.
    #[serde(default, deserialize_with = "or_default")]
    pub success: bool,
    /// Why not, for people.
    #[serde(default, deserialize_with = "words")]
    pub message: Option<String>,
    /// Its name, for people.
    #[serde(default, deserialize_with = "name")]
    pub display_name: Option<String>,
}

/// `peer_rename_node`, which asks the receiver to take this name, and `peer_display_name_update`,
/// by which the sender tells its own name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeName {
    /// The name, for people.
    #[serde(deserialize_with = "needed_name")]
    pub name: String,
}

fn no_token() -> Secret {
    Secret::from("")
}

fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    Ok(any::<_, String>(deserializer)?.map_or_else(no_token, Secret::from))
}
