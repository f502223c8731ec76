//! Terminals: opening, input, size and output.

use serde::{Deserialize, Serialize};

use crate::workspace::{
    base64::{self, BadBytes},
    bounded::{
        maybe_args, maybe_name, maybe_path, maybe_text, or_default, or_true, path, tags, text,
    },
    ids::{ProjectId, SessionId},
    limits::{INPUT_MAX, REQUEST_ID_MAX},
};

/// `open_terminal`: run a command in a new terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTerminal {
    /// Where to start; absent: the project's directory.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The program.
    #[serde(deserialize_with = "path")]
    pub command: String,
    /// Its arguments.
    #[serde(default, deserialize_with = "maybe_args")]
    pub args: Option<Vec<String>>,
    /// Its name.
    #[serde(default, deserialize_with = "maybe_name")]
    pub name: Option<String>,
    /// The project it belongs to. Ours, like all fields below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// How wide it is at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cols: Option<u16>,
    /// How high it is at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
    /// Its tags.
    #[serde(default, deserialize_with = "tags", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether to keep it out of listings.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The user to run as, in place of the project's.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<String>,
    /// The node of the cluster to run on.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

/// `resize`: how large the client's terminal is. Ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resize {
    /// Which session.
    pub session_id: SessionId,
    /// How wide.
    pub cols: u16,
    /// How high.
    pub rows: u16,
    /// Whether the client shows it; the size of hidden clients does not count.
    #[serde(default = "visible", deserialize_with = "or_true")]
    pub visible: bool,
}

/// `terminal_input`: keys, as typed. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalInput {
    /// To which session.
    pub session_id: SessionId,
    /// The typed bytes, in the encoding. [`TerminalInput::bytes`] reads them.
    #[serde(deserialize_with = "text::<_, INPUT_MAX>")]
    pub data: String,
    /// The encoding of `data`.
    #[serde(default, deserialize_with = "or_default")]
    pub encoding: Encoding,
    /// The id that its acknowledgement repeats. Input with the same id is applied only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "maybe_text::<_, REQUEST_ID_MAX>")]
    pub input_id: Option<String>,
}

/// The encoding of the `data` of input. Ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Plain text.
    #[default]
    Text,
    /// Base64, for bytes that are not text.
    Base64,
}

impl TerminalInput {
    /// The bytes to write to the terminal.
    ///
    /// # Errors
    /// [`BadBytes`] where the encoding is base64 and the data is not.
    pub fn bytes(self) -> Result<Vec<u8>, BadBytes> {
        match self.encoding {
            Encoding::Text => Ok(self.data.into_bytes()),
            Encoding::Base64 => base64::decode(&self.data, INPUT_MAX),
        }
    }
}

/// `output`, read from its binary frame. It is never sent as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The session of the output.
    pub session_id: SessionId,
    /// Its number in the session's log, from 1.
    pub seq: u64,
    /// The bytes.
    pub data: String,
}

/// `session_history`: the point from which output continues after an `attach`. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHistory {
    /// Which session.
    pub session_id: SessionId,
    /// The number of the last output that the client has now. It must drop frames up to this
    /// number.
    pub last_seq: u64,
    /// The screen to begin with; none when the client resumes.
    pub snapshot: Option<SessionSnapshot>,
}

/// A session's screen; on its own it is a `session_snapshot` after output was left out. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSnapshot {
    /// Which session.
    pub session_id: SessionId,
    /// The number of the last output in it.
    pub seq: u64,
    /// How wide the screen is.
    pub cols: u16,
    /// How high the screen is.
    pub rows: u16,
    /// Text that repaints a reset terminal of that size.
    pub data: String,
}

/// `get_history`: earlier output, as written. Ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetHistory {
    /// Which session.
    pub session_id: SessionId,
    /// The number of the output before which to end; absent: up to the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_seq: Option<u64>,
    /// How many bytes to send at most; absent: the daemon decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// `history`. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Which session.
    pub session_id: SessionId,
    /// The number of the first output in it.
    pub from_seq: u64,
    /// The number of the last output in it.
    pub to_seq: u64,
    /// The output.
    pub data: String,
    /// Whether there is more output before it.
    pub more: bool,
}

/// `terminal_size`: the session's size, when another client changed it. Ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Which session.
    pub session_id: SessionId,
    /// How wide.
    pub cols: u16,
    /// How high.
    pub rows: u16,
}

fn visible() -> bool {
    true
}
