//! The inputs and outputs of a session's turns.

use protocol::workspace::{AgentEvent, PermissionOutcome, TurnOutcome};
use serde_json::Value;

use super::config::{MAX_PROMPT, MAX_QUEUED, MAX_QUEUED_BYTES};
use crate::agent::{
    launch::{Exit, Launch, Signal},
    line::Line,
    usage::Usage,
};

/// An input of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A prompt for the agent.
    Prompt {
        /// The prompt's text.
        text: String,
    },
    /// A line of the process's output.
    Line(Line),
    /// Text on the process's error output.
    Stderr(String),
    /// The process has ended, and all its output was passed in before.
    Exited(Exit),
    /// The process could not be started, for this reason.
    SpawnFailed(String),
    /// The turn must end. The second time, the process is killed.
    Interrupt,
    /// A person decided about a permission request.
    Permission {
        /// The id, as in [`Output::Ask`].
        request_id: String,
        /// Whether it is allowed.
        allow: bool,
        /// The reason for a refusal, for the agent.
        message: Option<String>,
    },
    /// The session must end. The second time, the process is killed.
    Stop,
    /// No further turn may begin: prompts wait. The process is closed once the running turn has
    /// ended.
    Freeze,
    /// Turns may begin again.
    Thaw,
}

/// An output of the machine, which the driver carries out.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Start a process. No other process of the session exists at this time.
    Start(Launch),
    /// Write these bytes to the process's input.
    Write(Vec<u8>),
    /// Close the process's input.
    CloseStdin,
    /// Send the process a signal.
    Signal(Signal),
    /// Kill the process and everything that it started, at once.
    Kill,
    /// Announce this event to all clients.
    Event(AgentEvent),
    /// Ask the clients for permission.
    Ask {
        /// The id of the request, unique in the daemon.
        request_id: String,
        /// The tool's name.
        tool: String,
        /// The tool's input.
        input: Value,
    },
    /// A permission request is resolved.
    Resolved {
        /// The id, as in [`Output::Ask`].
        request_id: String,
        /// The outcome.
        outcome: PermissionOutcome,
        /// The reason for a refusal.
        message: Option<String>,
    },
    /// A turn has ended; for usage, results and teams.
    TurnEnded(TurnEnd),
    /// Store this id of the conversation to resume. The usage of an earlier conversation does not
    /// count for it.
    Conversation(String),
    /// Store this usage of the conversation so far. It comes before the turn's end.
    Used(Usage),
}

/// A turn that has ended. A dialect knows neither the turn's number nor whether it was interrupted, so it has a
/// type of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// The turn's number.
    pub turn: u64,
    /// Its outcome.
    pub outcome: TurnOutcome,
    /// The agent's final answer.
    pub text: Option<String>,
    /// The error, if the turn failed.
    pub error: Option<String>,
    /// Its usage.
    pub usage: Usage,
}

/// The reason why an input was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnsError {
    /// The queue of prompts is full.
    #[error("{MAX_QUEUED} prompts wait already; try again when a turn has ended")]
    QueueFull,
    /// The prompts that wait are too long together.
    #[error(
        "the prompts that wait would have over {MAX_QUEUED_BYTES} bytes with this one; try again when a turn \
         has ended"
    )]
    QueueTooLong,
    /// The prompt is empty.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The prompt is too long.
    #[error("the prompt has {bytes} bytes; {MAX_PROMPT} are allowed")]
    PromptTooLong {
        /// The prompt's length, in bytes.
        bytes: usize,
    },
    /// No turn is running, so there is nothing to interrupt.
    #[error("no turn is running")]
    NoTurn,
    /// There is no such permission request, or it has been resolved.
    #[error("there is no open permission request \"{request_id}\"; it may have expired")]
    UnknownRequest {
        /// The requested id, shortened.
        request_id: String,
    },
    /// The session was stopped.
    #[error("the session was stopped")]
    Stopped,
}
