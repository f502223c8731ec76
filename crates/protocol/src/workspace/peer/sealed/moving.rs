//! How an agent moves from one member to another: `move_ask` and `move_answer` before it;
//! `move_prepare`, `move_chunk` and `move_prepared`; then `move_take` and `move_taken`, or
//! `move_refused`. `move_status` asks for the state of a move, and is answered with `move_aborted`,
//! `move_take` or, while it is undecided, `move_status`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::workspace::{
    base64,
    bounded::{few_of, maybe_name, maybe_path, path, text, texts},
    ids::SessionId,
    limits::{
        MOVED_CHUNK_MAX, MOVED_FILES_MAX, MOVED_MAX, PROMPT_MAX, QUEUE_MAX, REASON_MAX,
        REASONS_MAX, REQUEST_ID_MAX,
    },
    peer::object::ObjectText,
};

/// `move_ask`: whether the receiver could run this agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveAsk {
    /// The move: a random number that the session's owner has chosen.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// The agent's session.
    pub session_id: SessionId,
    /// The session's own facts.
    pub facts: ObjectText,
    /// The name of its project. At the receiver it belongs to the project of the same name.
    #[serde(default, deserialize_with = "maybe_name")]
    pub project: Option<String>,
    /// Where it works, relative to the project's directory.
    #[serde(default, deserialize_with = "maybe_path")]
    pub below: Option<String>,
    /// The directory at the receiver, if it is another one.
    #[serde(default, deserialize_with = "maybe_path")]
    pub to_dir: Option<String>,
    /// The size of all that moves with it, in bytes.
    pub bytes: u64,
}

/// `move_answer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveAnswer {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// The objections, for people; empty: the receiver could run it.
    #[serde(default, deserialize_with = "texts::<_, REASONS_MAX, REASON_MAX>")]
    pub problems: Vec<String>,
    /// Where it would work.
    #[serde(default, deserialize_with = "maybe_path")]
    pub working_dir: Option<String>,
}

/// `move_prepare`: the description of the agent. Its files follow in chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovePrepare {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// The agent's session.
    pub session_id: SessionId,
    /// How often the session has moved, this time included.
    pub moves: u64,
    /// The session's own facts.
    pub facts: ObjectText,
    /// The number of its last turn.
    pub turn: u64,
    /// The number of its newest output.
    pub last_seq: u64,
    /// The prompts that wait, the oldest first.
    #[serde(default, deserialize_with = "texts::<_, QUEUE_MAX, PROMPT_MAX>")]
    pub queue: Vec<String>,
    /// The ids of input that was applied.
    #[serde(default, deserialize_with = "texts::<_, MOVED_MAX, REQUEST_ID_MAX>")]
    pub applied: Vec<String>,
    /// The agent's conversation and the session's history.
    #[serde(default, deserialize_with = "few_of::<_, _, MOVED_FILES_MAX>")]
    pub files: Vec<MoveFile>,
}

/// A file that moves with the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveFile {
    /// Its name: a relative path, which the receiver has to check.
    #[serde(deserialize_with = "path")]
    pub name: String,
    /// Its size, in bytes.
    pub size: u64,
}

/// `move_chunk`: a part of a file that moves with the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveChunk {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// The file's place in the list of `move_prepare`, from 0.
    pub file: u32,
    /// Where in the file the part begins, in bytes.
    pub offset: u64,
    /// The bytes, at most [`MOVED_CHUNK_MAX`].
    #[serde(serialize_with = "write_bytes", deserialize_with = "read_bytes")]
    pub data: Vec<u8>,
}

/// A message about one move with no other field: `move_prepared`, `move_status`, `move_aborted`,
/// `move_take`, `move_taken`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfMove {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// The agent's session.
    pub session_id: SessionId,
}

/// `move_refused`: the sender of this message does not take the agent, and never will by this move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRefused {
    /// The move.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// Why, for people.
    #[serde(deserialize_with = "text::<_, REASON_MAX>")]
    pub message: String,
}

fn write_bytes<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&base64::encode(data))
}

fn read_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    base64::decode(&text, MOVED_CHUNK_MAX).map_err(D::Error::custom)
}
