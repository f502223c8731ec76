//! A session's description for clients (specification, "SessionInfo Object").

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    bounded::{or_default, or_true},
    ids::{ProjectId, SessionId, TeamId},
};

/// The provider of an agent whose session does not name one.
pub const DEFAULT_PROVIDER: &str = "claude";

/// The tag of a session that runs a development server, whose port the daemon looks for.
pub const DEV_SERVER_TAG: &str = "dev-server";

/// A session. Fields that older daemons do not send have defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its mode.
    pub mode: SessionMode,
    /// The state of its process.
    pub status: SessionStatus,
    /// Where its process was started.
    pub working_dir: String,
    /// The agent's model, if one was asked for.
    pub model: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last read or wrote anything.
    pub last_active: Timestamp,
    /// How many connections follow its output.
    #[serde(default, deserialize_with = "or_default")]
    pub attached_clients: u32,
    /// The process that it adopted.
    pub adopted_pid: Option<u32>,
    /// The project it belongs to.
    pub project_id: Option<ProjectId>,
    /// The node of the cluster that owns it; none without a cluster.
    pub node_id: Option<String>,
    /// Its kind of process.
    #[serde(default, deserialize_with = "or_default")]
    pub kind: SessionKind,
    /// Which agent's command line backs it. Without meaning for a shell.
    #[serde(default = "default_provider", deserialize_with = "provider")]
    pub provider: String,
    /// Whether listings leave it out.
    #[serde(default, deserialize_with = "or_default")]
    pub hidden: bool,
    /// The team it belongs to.
    pub team_id: Option<TeamId>,
    /// Whether it leads that team.
    #[serde(default, deserialize_with = "or_default")]
    pub is_team_leader: bool,
    /// Whether its owner can be reached. Ours.
    #[serde(default = "reachable", deserialize_with = "or_true")]
    pub reachable: bool,
    /// The TCP port that a development server listens on, once it is known. Ours.
    pub dev_server_port: Option<u16>,
    /// The end of its process, if known: its exit code, or 128 plus the number of the signal that
    /// ended it. Ours.
    pub exit_code: Option<i32>,
    /// The number of its newest output, if known. Ours.
    pub last_seq: Option<u64>,
    /// How many permission questions of its agent are open; also 0 if its daemon does not report
    /// them. Ours.
    #[serde(default, deserialize_with = "or_default")]
    pub asks: u32,
    /// Its tags, set when it was made. Ours.
    #[serde(default, deserialize_with = "or_default")]
    pub tags: Vec<String>,
}

/// How a session is driven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// An agent, turn by turn. Its output is lines of JSON.
    #[default]
    Sdk,
    /// A terminal. Its output is the terminal's.
    Pty,
    /// A process that was started elsewhere.
    Adopted,
}

/// The state of a session's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// A terminal's or an adopted process runs, or an agent is in a turn.
    Running,
    /// An agent waits for a prompt.
    Idle,
    /// A terminal's process runs, but no client shows it any more.
    Detached,
    /// It has ended.
    Exited,
}

/// The kind of a session's process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionKind {
    /// Claude Code, driven or in a terminal.
    #[default]
    Claude,
    /// A command in a terminal.
    Shell {
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Option<Vec<String>>,
    },
    /// Any other agent. Ours.
    Agent {
        /// Its provider.
        provider: String,
    },
}

impl SessionKind {
    /// The kind of a session with an agent of this provider.
    pub fn of_provider(provider: &str) -> Self {
        match provider {
            DEFAULT_PROVIDER => Self::Claude,
            other => Self::Agent { provider: other.to_owned() },
        }
    }
}

fn reachable() -> bool {
    true
}

fn default_provider() -> String {
    DEFAULT_PROVIDER.to_owned()
}

fn provider<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(|provider| provider.unwrap_or_else(default_provider))
}
