//! Changes of projects' files at other members: `subscribe_project_files`,
//! `unsubscribe_project_files`, `project_files_changed`.

use serde::{Deserialize, Serialize};

use crate::workspace::{bounded::text, ids::ProjectId, limits::REQUEST_ID_MAX};

/// `subscribe_project_files`: asks a project's owner for changes of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeProjectFiles {
    /// The subscription, named by the member that asks.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub subscriber_id: String,
    /// Its project id.
    pub project_id: ProjectId,
}
