//! The arguments of the tools. The model gets the comments below as descriptions.

use schemars::JsonSchema;
use serde::Deserialize;

/// `handoff`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Handoff {
    #[serde(flatten)]
    pub(crate) work: Assign,
    /// How long to wait for the result, in seconds; 45 if you leave it out. Nothing is lost when the
    /// time is over: call the tool wait with the wait_id that you get.
    #[serde(default)]
    pub(crate) timeout_seconds: Option<u64>,
}

/// `assign`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Assign {
    /// Everything the new worker has to know and do: it sees nothing of this conversation. Say which
    /// files matter, what the result should look like, and when the work is done.
    pub(crate) prompt: String,
    /// A short name for the worker, such as "explorer".
    #[serde(default)]
    pub(crate) worker_name: Option<String>,
    /// Which agent to use ("claude", "codex", "gemini", "opencode", ...). Leave it out to use the same
    /// as you.
    #[serde(default)]
    pub(crate) provider: Option<String>,
    /// The machine to run the worker on, by its name: only if you know of several machines. Leave
    /// it out to use your own.
    #[serde(default)]
    pub(crate) node: Option<String>,
    /// The directory to start in; the same path as yours if you leave it out. On another machine it
    /// must exist there.
    #[serde(default)]
    pub(crate) working_dir: Option<String>,
}

/// `wait`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Wait {
    /// The session ids of the workers to wait for. Leave it out to wait for all that have work.
    #[serde(default)]
    pub(crate) workers: Option<Vec<String>>,
    /// The wait_id of an earlier wait or handoff that timed out, to go on with it.
    #[serde(default)]
    pub(crate) wait_id: Option<String>,
    /// How long to wait, in seconds; 45 if you leave it out.
    #[serde(default)]
    pub(crate) timeout_seconds: Option<u64>,
}

/// `send`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Message {
    /// The message.
    pub(crate) message: String,
    /// The session id of the member that the message is for. Leave it out to write to your leader, or,
    /// if you are the leader, to all workers.
    #[serde(default)]
    pub(crate) to: Option<String>,
}

/// `inbox`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Inbox {
    /// The next_seq of the last call: you get only later messages, and the earlier ones count as
    /// read. Leave it out to get all messages.
    #[serde(default)]
    pub(crate) since_seq: Option<u64>,
}

/// `report`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Report {
    /// The result of the work, complete: your leader reads only this.
    pub(crate) result: String,
    /// Whether the work is done as it was asked for; true if you leave it out.
    #[serde(default = "done")]
    pub(crate) success: bool,
}

fn done() -> bool {
    true
}
