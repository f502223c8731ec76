//! The facts of a session, stored as JSON.

use std::collections::VecDeque;

use protocol::workspace::{ProjectId, SessionId, SessionKind, SessionMode, TeamId};
use serde::{Deserialize, Serialize};
use session::agent::Usage as TurnUsage;

/// The kind of these facts in the store.
pub(crate) const KIND: &str = "session";

/// The facts of a session, live or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    /// Its id.
    pub id: SessionId,
    /// The name that clients gave it.
    pub name: Option<String>,
    /// Terminal, driven agent or adopted process.
    pub mode: SessionMode,
    /// The program that runs in it.
    pub kind: SessionKind,
    /// Its directory, a full path.
    pub working_dir: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// When it was made.
    pub created_at: jiff::Timestamp,
    /// When it last had input or output.
    pub last_active: jiff::Timestamp,
    /// Its project.
    pub project_id: Option<ProjectId>,
    /// The agent's name.
    pub provider: String,
    /// Further arguments of the agent.
    pub extra_args: Vec<String>,
    /// Whether only its viewers get its events, and lists leave it out.
    pub hidden: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its team.
    pub team_id: Option<TeamId>,
    /// Whether it leads its team.
    pub is_team_leader: bool,
    /// Its user; `None`: the daemon's own.
    pub run_as_user: Option<String>,
    /// An agent's own id of its conversation, with which the conversation is continued; for an
    /// adopted process, the id of the copy.
    pub conversation: Option<String>,
    /// The conversation's usage so far, for agents that report it only for the whole conversation.
    #[serde(default)]
    pub used: Option<TurnUsage>,
    /// The number of the last turn that began; 0 before the first.
    pub turn: u64,
    /// The clients' prompts whose turns have not begun, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The ids of the newest prompts, so that a prompt that is sent again after a restart is not taken twice.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub prompt_ids: VecDeque<String>,
    /// For an adopted process: its pid, and its start time in ticks since boot; 0 until that is
    /// known.
    pub adopted: Option<(u32, u64)>,
    /// For an adopted process: how far its transcript is read.
    #[serde(default)]
    pub transcript: Option<TranscriptPosition>,
    /// How the session ended, in words; `None` while it has not.
    pub ended: Option<String>,
    /// How its process ended: its exit code, or 128 plus the number of a signal.
    #[serde(default)]
    pub exit_code: Option<i32>,
}

/// The most ids of prompts that are stored.
const PROMPT_IDS: usize = 64;

impl Facts {
    /// Notes the id of a prompt that was taken.
    pub(crate) fn note_prompt(&mut self, id: &str) {
        if self.prompt_ids.len() >= PROMPT_IDS {
            self.prompt_ids.pop_front();
        }
        self.prompt_ids.push_back(id.to_owned());
    }
}

/// How far a transcript is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptPosition {
    /// The id of the conversation.
    pub conversation: String,
    /// The identity of the file: device and inode.
    pub file: (u64, u64),
    /// How many bytes of the file are read, up to the end of a line.
    pub at: u64,
    /// The number of the newest output at that time.
    pub seq: u64,
}

/// The stored form: the facts, and the terminal's size in columns and rows.
#[derive(Serialize)]
struct FactsRecord<'a> {
    #[serde(flatten)]
    facts: &'a Facts,
    size: (u16, u16),
}

#[derive(Deserialize)]
pub(crate) struct StoredFacts {
    #[serde(flatten)]
    pub(crate) facts: Facts,
    #[serde(default)]
    pub(crate) size: Option<(u16, u16)>,
}

/// The stored text. `None` only if the facts could not be JSON, which does not happen.
pub(crate) fn write(facts: &Facts, size: (u16, u16)) -> Option<String> {
    let written = serde_json::to_string(&FactsRecord { facts, size });
    written.inspect_err(|error| tracing::error!(%error, "cannot write a session down")).ok()
}
