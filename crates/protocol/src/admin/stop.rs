//! The JSON of `POST /admin/stop`: a server is asked to end.

use serde::{Deserialize, Serialize};

/// Body of the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// Whether what is in flight ends, too, instead of finishing.
    #[serde(default)]
    pub now: bool,
    /// Whether terminals and agents go on for the next server with the same data, instead of ending.
    #[serde(default)]
    pub keep_sessions: bool,
}

/// A line of the answer: what the server waits for. The first comes at once, one follows each change, and the
/// last, with `drained`, when it waits for nothing more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopProgress {
    /// Answers that still run.
    pub answers: u64,
    /// Terminals that run on its machine.
    pub terminals: u64,
    /// Agents that run on its machine.
    pub agents: u64,
    /// For how many seconds they go on without it; 0: they end with it.
    #[serde(default)]
    pub keep_sessions_secs: u64,
    /// Whether all answers have ended.
    pub drained: bool,
}
