//! The inputs and outputs of a session's turns.

use protocol::workspace::{AgentEvent, PermissionOutcome, TurnOutcome};
use serde_json::Value;

use super::limits::{MAX_PROMPT, MAX_QUEUED};
use crate::agent::{
    launch::{Exit, Launch, Signal},
    usage::Usage,
};

/// An input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Somebody wants something of the agent.
    Prompt {
        /// Its text.
        text: String,
    },
    /// A line of the process's output, without its end.
    Line(String),
    /// Something on its error output.
    Stderr(String),
    /// The process is gone, and all its output was handed in.
    Exited(Exit),
    /// It could not be started, for this reason.
    SpawnFailed(String),
    /// The turn is to end; a second time, at once.
    Interrupt,
    /// Somebody decided about a request.
    Permission {
        /// As in [`Output::Ask`].
        request_id: String,
        /// Whether it is allowed.
        allow: bool,
        /// Why not, for the agent.
        message: Option<String>,
    },
    /// The session ends; a second time, at once.
    Stop,
}

/// An output.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Start a process. There is no other one.
    Start(Launch),
    /// Write this to its input.
    Write(Vec<u8>),
    /// End its input.
    CloseStdin,
    /// Send it a signal.
    Signal(Signal),
    /// End it and all that it started, now.
    Kill,
    /// Tell everybody.
    Event(AgentEvent),
    /// Ask somebody.
    Ask {
        /// Names the request, in all of the daemon.
        request_id: String,
        /// The tool's name.
        tool: String,
        /// The tool's input.
        input: Value,
    },
    /// A request is decided.
    Resolved {
        /// As in [`Output::Ask`].
        request_id: String,
        /// Its outcome.
        outcome: PermissionOutcome,
        /// Why not.
        message: Option<String>,
    },
    /// A turn is over: for usage, results and teams.
    TurnEnded(TurnEnd),
    /// Keep this: the conversation to go on with. Nothing of what an earlier one took counts for it.
    Conversation(String),
    /// Keep this: what the conversation has taken so far. It comes before the turn's end.
    Used(Usage),
}

/// A turn that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// Its number.
    pub turn: u64,
    /// How it ended.
    pub outcome: TurnOutcome,
    /// The agent's final answer.
    pub text: Option<String>,
    /// The error.
    pub error: Option<String>,
    /// Its usage.
    pub usage: Usage,
}

/// Why something cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnsError {
    /// As many prompts wait as may.
    #[error("{MAX_QUEUED} prompts wait already; try again when a turn has ended")]
    QueueFull,
    /// Nothing is asked.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// Too much is asked.
    #[error("the prompt has {bytes} bytes; {MAX_PROMPT} are allowed")]
    PromptTooLong {
        /// Its length.
        bytes: usize,
    },
    /// There is nothing to interrupt.
    #[error("no turn is running")]
    NoTurn,
    /// There is no such request, or no longer.
    #[error("there is no open permission request \"{request_id}\"; it may have expired")]
    UnknownRequest {
        /// The name in the request, shortened.
        request_id: String,
    },
    /// The session ends.
    #[error("the session was stopped")]
    Stopped,
}
