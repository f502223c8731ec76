//! Subscriptions at other members: to the output of sessions (`subscribe_output`, `session_output`), and to changes
//! of projects' files (`subscribe_project_files`).

use serde::{Deserialize, Serialize};

use super::lenient::count;
use crate::workspace::{
    bounded::text,
    ids::{ProjectId, SessionId},
    limits::REQUEST_ID_MAX,
};

/// `subscribe_output`: asks a session's owner for its output, from now on or after a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeOutput {
    /// The subscription, named by the member that asks.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub subscriber_id: String,
    /// Its session id.
    pub session_id: SessionId,
    /// The number of the last output that the asking member already has.
    #[serde(default, deserialize_with = "count")]
    pub after_seq: Option<u64>,
}

/// A message about one subscription with no other field: `unsubscribe_output`,
/// `unsubscribe_project_files`, `project_files_changed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfSubscriber {
    /// The subscription.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub subscriber_id: String,
}

/// `session_output`: output of a session, for all subscriptions to it of the receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOutput {
    /// Its session id.
    pub session_id: SessionId,
    /// Its number in the session's log; 0 if the message has none.
    #[serde(default, deserialize_with = "number")]
    pub seq: u64,
    /// The output.
    pub data: String,
}

/// `subscribe_project_files`: asks a project's owner for changes of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeProjectFiles {
    /// The subscription, named by the member that asks.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub subscriber_id: String,
    /// Its project id.
    pub project_id: ProjectId,
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    count(deserializer).map(Option::unwrap_or_default)
}
