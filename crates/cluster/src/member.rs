//! The known facts about a member: the value of its entry.

use base::NodeId;
use serde::{Deserialize, Serialize};

/// The known facts about a member. A machine that joins gets only those of `MemberFacts`, of
/// members with a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its node id.
    pub node_id: String,
    /// Its public key: no other machine can link under its id. A plain peer has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<NodeId>,
    /// Its name, for people.
    pub name: String,
    /// The addresses of its peer port.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The plain peers that are linked to it. Other members reach them through it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain: Vec<PlainPeer>,
}

/// A plain peer that is linked to a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainPeer {
    /// Its node id.
    pub node_id: String,
    /// Its name, for people.
    pub name: String,
}

impl Member {
    /// Reads the value of an entry. `None` if it cannot be read, as with the entry of a newer
    /// Warren.
    pub fn read(value: &str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }

    pub(crate) fn plain(peer: PlainPeer) -> Self {
        let PlainPeer { node_id, name } = peer;
        Self { node_id, key: None, name, addresses: Vec::new(), plain: Vec::new() }
    }

    pub(crate) fn text(&self) -> String {
        // Text is always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}
