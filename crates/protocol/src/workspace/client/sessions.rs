//! Sessions: making, finding, following and ending them.

use serde::{Deserialize, Serialize};

use crate::workspace::{
    bounded::{maybe_args, maybe_name, maybe_path, maybe_text, name, or_default, tags, text},
    ids::{ProjectId, SessionId},
    limits::{PROMPT_MAX, REQUEST_ID_MAX},
    session::{SessionInfo, SessionMode},
};

/// `new_session`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSession {
    /// Where to start; absent: the project's directory.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Its mode; absent: as an agent.
    #[serde(default, deserialize_with = "or_default")]
    pub mode: SessionMode,
    /// The agent's model.
    #[serde(default, deserialize_with = "maybe_name")]
    pub model: Option<String>,
    /// Its name.
    #[serde(default, deserialize_with = "maybe_name")]
    pub name: Option<String>,
    /// More arguments for the agent's command line; with the tag `dev-server`, the whole command
    /// line.
    #[serde(default, deserialize_with = "maybe_args")]
    pub extra_args: Option<Vec<String>>,
    /// The user to run as, in place of the project's.
    #[serde(default, deserialize_with = "maybe_name")]
    pub run_as_user: Option<String>,
    /// The node of the cluster to run on.
    #[serde(default, deserialize_with = "maybe_name")]
    pub node_id: Option<String>,
    /// Which agent; absent: `claude`.
    #[serde(default, deserialize_with = "maybe_name")]
    pub provider: Option<String>,
    /// Whether to keep it out of listings.
    #[serde(default, deserialize_with = "or_default")]
    pub hidden: bool,
    /// Its tags.
    #[serde(default, deserialize_with = "tags")]
    pub tags: Vec<String>,
    /// The project it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// How wide its terminal is at first. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cols: Option<u16>,
    /// How high its terminal is at first. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
}

/// `attach`: follow a session's output, and no other's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// Its session id.
    pub session_id: SessionId,
    /// The last output that the client has already. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<u64>,
}

/// `send_input`: a whole prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendInput {
    /// To which session.
    pub session_id: SessionId,
    /// The prompt.
    #[serde(deserialize_with = "text::<_, PROMPT_MAX>")]
    pub input: String,
    /// The id that its acknowledgement repeats. Input with the same id is applied only once. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "maybe_text::<_, REQUEST_ID_MAX>")]
    pub input_id: Option<String>,
}

/// `list_sessions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSessions {
    /// Whether to list the hidden ones, too. Ours.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub include_hidden: bool,
}

/// `adopt_session`: adopt a process that was started elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptSession {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    #[serde(default, deserialize_with = "maybe_name")]
    pub name: Option<String>,
    /// Its working directory; absent: that of the process.
    #[serde(default, deserialize_with = "maybe_path")]
    pub working_dir: Option<String>,
}

/// `rename_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameSession {
    /// Its session id.
    pub session_id: SessionId,
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: String,
}

/// `move_session`: moves an agent's session to another machine of the cluster. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveSession {
    /// Its session id.
    pub session_id: SessionId,
    /// The node id or the name of the machine.
    #[serde(deserialize_with = "name")]
    pub node_id: String,
    /// Where it works there; absent: in the project of the same name, or in the same directory.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Whether to interrupt the running turn, instead of waiting for its end.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub interrupt: bool,
    /// Whether to move even if something must stay behind.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub accept_losses: bool,
    /// Whether only to report what a move would do.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// `session_moved`: a session has moved to another machine, or would move there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMoved {
    /// Its session id.
    pub session_id: SessionId,
    /// The node id of the machine.
    pub node_id: String,
    /// The machine's name.
    pub node_name: String,
    /// Where it works there.
    pub working_dir: String,
    /// The things that stay behind, for people.
    #[serde(default)]
    pub stays: Vec<String>,
    /// Whether nothing was done, and this only reports what a move would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A message about one session with no other field: `kill_session`, `interrupt`, `take_control`;
/// `attached`, `detached`, `session_killed`, `session_unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfSession {
    /// Its session id.
    pub session_id: SessionId,
}

/// A session's present state: `session_created`, `session_status_changed`, `terminal_opened`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithSession {
    /// The session.
    pub session: Box<SessionInfo>,
}

/// `session_list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
}
