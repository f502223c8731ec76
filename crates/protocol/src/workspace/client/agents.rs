//! Agents: the events of their turns, their permission requests, and their usage. None of this is
//! in the specification.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workspace::{
    bounded::maybe_text,
    ids::{PermissionId, SessionId},
    limits::REASON_MAX,
};

/// `permission_request`: an agent asks whether it may use a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// The session of the asking agent.
    pub session_id: SessionId,
    /// The id of the question, which its answer repeats.
    pub request_id: PermissionId,
    /// The tool's name, as the agent reports it.
    pub tool: String,
    /// The tool's input, as the agent reports it.
    pub input: Value,
}

/// `permission_response`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionResponse {
    /// The session of the agent that asked; not needed, since the question belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The question.
    pub request_id: PermissionId,
    /// Whether the agent may use the tool.
    pub allow: bool,
    /// The answer for the agent.
    #[serde(default, deserialize_with = "maybe_text::<_, REASON_MAX>")]
    pub message: Option<String>,
}

/// `permission_resolved`: the question is no longer open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionResolved {
    /// The session of the agent that asked.
    pub session_id: SessionId,
    /// The question.
    pub request_id: PermissionId,
    /// Its outcome.
    pub outcome: PermissionOutcome,
    /// The answer that the agent got.
    pub message: Option<String>,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOutcome {
    /// The agent may use the tool.
    Allow,
    /// The agent may not use the tool.
    Deny,
    /// No answer came in time, or the agent no longer asks.
    Expired,
}

/// `usage`: the usage of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The agent's session.
    pub session_id: SessionId,
    /// Which turn, from 1.
    pub turn: u64,
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Its cost in US dollars, if the agent reports it.
    pub cost_usd: Option<f64>,
}

/// `agent_event`: the meaning of an agent's line of output, in any dialect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentEventMessage {
    /// The agent's session.
    pub session_id: SessionId,
    /// The number of the output that it was read from.
    pub seq: u64,
    /// The event's number in the session, as in [`StoredEvent`], if the daemon stores events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The event.
    pub event: AgentEvent,
}

/// `get_turns`: asks for the stored events of an agent's turns; without bounds, for the newest
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetTurns {
    /// The agent's session.
    pub session_id: SessionId,
    /// Only events before this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Only events after this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// How many bytes of events to send at most; absent: the daemon decides. One event is always
    /// sent, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// `turns`: events of an agent's turns, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEvents {
    /// The agent's session.
    pub session_id: SessionId,
    /// The events.
    pub events: Vec<StoredEvent>,
    /// Whether there are more such events before them.
    pub more: bool,
}

/// An event of an agent, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredEvent {
    /// Its number in the session: later events have higher numbers. Some numbers belong to no event.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The event. Of long prompts, inputs and outputs only the beginning is stored.
    pub event: AgentEvent,
}

/// An event of an agent's turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentEvent {
    /// A turn begins.
    TurnStarted {
        /// The number of the turn, from 1.
        turn: u64,
        /// The prompt that it answers. Of a long prompt, only the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
    },
    /// The agent's text.
    Text {
        /// Its text.
        text: String,
        /// Whether it continues the text before it.
        delta: bool,
        /// Whether the agent says it on its own, and not as an answer to a prompt.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unasked: bool,
    },
    /// The agent thinks.
    Thinking {
        /// Its text.
        text: String,
    },
    /// The agent begins to use a tool.
    ToolStarted {
        /// The id of the use; its end has the same id.
        id: String,
        /// The tool's name.
        name: String,
        /// The tool's input.
        input: Value,
    },
    /// The agent has used a tool.
    ToolFinished {
        /// The use.
        id: String,
        /// Whether it went well.
        ok: bool,
        /// Its result.
        output: String,
    },
    /// Something that the user should know and that is not part of the answer.
    Notice {
        /// Its message.
        message: String,
    },
    /// A turn ends.
    TurnEnded {
        /// Its turn.
        turn: u64,
        /// Its outcome.
        outcome: TurnOutcome,
        /// Why it failed.
        #[serde(default)]
        error: Option<String>,
        /// The whole answer, if the agent reports it.
        #[serde(default)]
        text: Option<String>,
    },
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// It ended on its own.
    Completed,
    /// It was interrupted.
    Interrupted,
    /// It failed.
    Failed,
}
