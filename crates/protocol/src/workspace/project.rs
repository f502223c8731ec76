//! A project's description for clients. The specification mentions projects, but does not define
//! the object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{bounded::or_default, ids::ProjectId};

/// A project: a working directory known to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// Its name, for people.
    pub name: String,
    /// Its directory on the machine that owns it.
    pub working_dir: String,
    /// The user its sessions run as and its files are written as; none: the daemon's own.
    pub run_as_user: Option<String>,
    /// Variables of its sessions' environment.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, String>,
    /// The node of the cluster that owns it; none without a cluster.
    pub node_id: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}
