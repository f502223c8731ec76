//! Names of members: `peer_rename_node`, `peer_display_name_update`.

use serde::{Deserialize, Serialize};

use super::lenient::needed_name;

/// `peer_rename_node`, which asks its receiver to take this name, and `peer_display_name_update`,
/// which says that its sender has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeName {
    /// The name, for people.
    #[serde(deserialize_with = "needed_name")]
    pub name: String,
}
