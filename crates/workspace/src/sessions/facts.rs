//! The facts of a session, stored as JSON.

use protocol::workspace::{ProjectId, SessionId, SessionKind, SessionMode, TeamId};
use serde::{Deserialize, Serialize};
use session::agent::Usage as TurnUsage;

/// The kind of these facts in the store.
pub(crate) const KIND: &str = "session";

/// The facts of a session, live or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) id: SessionId,
    pub(crate) name: Option<String>,
    pub(crate) mode: SessionMode,
    pub(crate) kind: SessionKind,
    pub(crate) working_dir: String,
    pub(crate) model: Option<String>,
    pub(crate) created_at: jiff::Timestamp,
    pub(crate) last_active: jiff::Timestamp,
    pub(crate) project_id: Option<ProjectId>,
    pub(crate) provider: String,
    pub(crate) extra_args: Vec<String>,
    pub(crate) hidden: bool,
    pub(crate) tags: Vec<String>,
    pub(crate) team_id: Option<TeamId>,
    pub(crate) is_team_leader: bool,
    pub(crate) run_as_user: Option<String>,
    /// An agent's own id of its conversation, with which the conversation is continued; for an
    /// adopted process, the id of the copy.
    pub(crate) conversation: Option<String>,
    /// The conversation's usage so far, for agents that report it only for the whole conversation.
    #[serde(default)]
    pub(crate) used: Option<TurnUsage>,
    /// Turns so far.
    pub(crate) turn: u64,
    /// For an adopted process: its pid, and its start time in ticks since boot; 0 until that is
    /// known.
    pub(crate) adopted: Option<(u32, u64)>,
    /// For an adopted process: how far its transcript is read.
    #[serde(default)]
    pub(crate) transcript: Option<TranscriptPosition>,
    /// How it ended, in words, once it has.
    pub(crate) ended: Option<String>,
    /// How its process ended: its exit code, or 128 plus the number of a signal.
    #[serde(default)]
    pub(crate) exit_code: Option<i32>,
}

/// How far a transcript is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TranscriptPosition {
    pub(crate) conversation: String,
    /// The identity of the file: device and inode.
    pub(crate) file: (u64, u64),
    /// How many bytes of the file are read, up to the end of a line.
    pub(crate) at: u64,
    /// The number of the newest output at that time.
    pub(crate) seq: u64,
}

/// The stored form: the facts, and the terminal's size in columns and rows.
#[derive(Serialize)]
struct FactsRecord<'a> {
    #[serde(flatten)]
    facts: &'a Facts,
    size: (u16, u16),
}

#[derive(Deserialize)]
pub(super) struct StoredFacts {
    #[serde(flatten)]
    pub(super) facts: Facts,
    #[serde(default)]
    pub(super) size: Option<(u16, u16)>,
}

/// The stored text. `None` only if the facts could not be JSON, which does not happen.
pub(super) fn write(facts: &Facts, size: (u16, u16)) -> Option<String> {
    let written = serde_json::to_string(&FactsRecord { facts, size });
    written.inspect_err(|error| tracing::error!(%error, "cannot write a session down")).ok()
}
