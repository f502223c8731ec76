//! The connection itself: authentication and general errors.

use base::Secret;
use serde::{Deserialize, Serialize, Serializer};

use crate::workspace::bounded::text;
use crate::workspace::{
    ids::SessionId,
    limits::{REQUEST_ID_MAX, TOKEN_MAX},
};

/// `auth`: the first message of every connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Auth {
    /// A key, or a token of the workspace. It stays hidden when the message is logged.
    #[serde(serialize_with = "exposed", deserialize_with = "secret")]
    pub token: Secret,
}

/// `auth_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthResult {
    /// Whether the connection may continue.
    pub success: bool,
    /// Why, for people.
    pub message: String,
}

/// `error`: a request failed, and no other reply reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage {
    /// Why, for people.
    pub message: String,
}

/// `client_notice`: something that the client's user should know, but that is not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientNotice {
    /// Its notice.
    pub notice: Notice,
}

/// A notice's code: a directory has more entries than were sent.
pub const DIRECTORY_CUT: &str = "directory_cut";

/// A notice for a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// How much it matters.
    pub level: NoticeLevel,
    /// The kind of notice, such as [`OUTPUT_LAGGED`].
    pub code: String,
    /// The event, for people.
    pub message: String,
    /// More of it, for people.
    pub detail: Option<String>,
    /// The session that it is about.
    pub session_id: Option<SessionId>,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is worse than it should be.
    Warning,
    /// Something is lost.
    Error,
}

/// The member that runs the session is still being looked for; the attach will be passed on to it.
pub const CLUSTER_OWNER_LOOKUP: &str = "cluster_owner_lookup";
/// The member that runs the session cannot be reached. The session is shown again once it can be.
/// Ours.
pub const OWNER_UNREACHABLE: &str = "owner_unreachable";
/// The client fell behind and output was left out; a snapshot follows.
pub const OUTPUT_LAGGED: &str = "output_lagged";
/// The client could not catch up, and is sent no more of this output.
pub const OUTPUT_BACKPRESSURE: &str = "output_backpressure";

/// `input_ack`: input was applied. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputAck {
    /// The id that its sender gave it.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub input_id: String,
    /// For a prompt to an agent: the number of its turn, which may begin later, after the turns
    /// before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

/// Writes a secret in clear, to send it.
pub(in crate::workspace) fn exposed<S: Serializer>(
    token: &Secret,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(token.expose())
}

/// Reads a secret of at most [`TOKEN_MAX`] bytes.
pub(in crate::workspace) fn secret<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Secret, D::Error> {
    text::<_, TOKEN_MAX>(deserializer).map(Secret::from)
}
