//! The trait of a dialect, and its types.

use std::fmt;

use protocol::workspace::{AgentEvent, TurnOutcome};
use serde_json::Value;

use super::words;
use crate::agent::{
    launch::{Exit, Launch, Signal},
    usage::Usage,
};

/// What one kind of program is started with, says and wants to hear. One for each session; it lives
/// on when the program ends and is started again.
pub trait Dialect: fmt::Debug + Send {
    /// The name that it was opened by.
    fn provider(&self) -> &str;

    /// Whether its process takes one prompt after the other; otherwise it ends with its turn.
    fn is_warm(&self) -> bool {
        false
    }

    /// Whether its conversation would go on after its process was stopped.
    fn is_resumable(&self) -> bool {
        true
    }

    /// What its conversation has taken so far, if that is what it tells rather than what a turn took.
    fn used(&self) -> Option<Usage> {
        None
    }

    /// The command line that starts it with a prompt. Whatever was before is over.
    fn launch(&mut self, start: Start<'_>) -> Launch;

    /// The input of a warm process for its next prompt, which has this id: a UUID.
    fn prompt(&mut self, _text: &str, _id: &str) -> Vec<u8> {
        Vec::new()
    }

    /// Whether it works although no prompt is worked on, so that there is something to interrupt.
    fn is_working(&self) -> bool {
        false
    }

    /// The meaning of a line of its output, a JSON object.
    fn heard(&mut self, line: &Value) -> ParsedLine;

    /// The meaning of a line that is too long to be read, by its beginning.
    fn heard_overlong(&mut self, _beginning: &str) -> Vec<AgentOutput> {
        Vec::new()
    }

    /// The way to end its turn.
    fn interrupt(&mut self) -> Halt;

    /// Its input for the answer to an [`AgentOutput::Ask`]. Each gets one.
    fn answer(&mut self, _key: &str, _decision: Decision<'_>) -> Vec<u8> {
        Vec::new()
    }

    /// What it means that the process ended within a turn; `tail` is the last of what it printed
    /// that was not JSON. Where nothing is said of the turn's end, it has failed.
    fn exited(&mut self, exit: Exit, tail: &str) -> Vec<AgentOutput>;
}

/// How a process is started.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The conversation to go on with; none begins a new one.
    pub conversation: Option<&'a str>,
    /// The first prompt.
    pub prompt: &'a str,
    /// The prompt's id, a UUID. No other prompt of the conversation has it.
    pub id: &'a str,
}

/// The meaning of a line.
#[derive(Debug, Default)]
pub struct ParsedLine {
    /// In order.
    pub said: Vec<AgentOutput>,
    /// Whether the agent is getting on. What is unknown, or only says that something else is
    /// waited for, does not keep a turn alive.
    pub is_progress: bool,
}

/// An item of a program's output.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentOutput {
    /// Something that it did.
    Event(AgentEvent),
    /// The conversation's id from here on.
    Conversation(String),
    /// It wants to be allowed a tool.
    Ask {
        /// The request's name in this dialect.
        key: String,
        /// The tool's name.
        tool: String,
        /// The tool's input.
        input: Value,
    },
    /// It no longer wants to know.
    AskCancelled {
        /// As in [`AgentOutput::Ask`].
        key: String,
    },
    /// It is to be told this.
    Write(Vec<u8>),
    /// The answer is complete; the process should end now.
    Leaving,
    /// The turn is over.
    Ended(TurnResult),
    /// It does not know the conversation that it was to go on with.
    ResumeRefused,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// In a word.
    pub outcome: TurnOutcome,
    /// The final answer.
    pub text: Option<String>,
    /// The error.
    pub error: Option<String>,
    /// Its usage.
    pub usage: Usage,
}

/// A way to end a program's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// By what it reads.
    Write(Vec<u8>),
    /// By a signal.
    Signal(Signal),
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// It may.
    Allow,
    /// It may not, for this reason.
    Deny(&'a str),
    /// The turn was interrupted before somebody decided.
    Cancelled,
}

impl ParsedLine {
    /// The agent is getting on.
    pub(crate) fn progress(said: Vec<AgentOutput>) -> Self {
        Self { said, is_progress: true }
    }

    pub(crate) fn waiting(said: Vec<AgentOutput>) -> Self {
        Self { said, is_progress: false }
    }
}

impl AgentOutput {
    pub(crate) fn text(text: &str, delta: bool) -> Self {
        Self::Event(AgentEvent::Text { text: text.to_owned(), delta, unasked: false })
    }

    pub(crate) fn thinking(text: &str) -> Self {
        Self::Event(AgentEvent::Thinking { text: text.to_owned() })
    }

    pub(crate) fn notice(message: &str) -> Self {
        Self::Event(AgentEvent::Notice { message: words::notice(message) })
    }

    pub(crate) fn tool_started(id: &str, name: &str, input: Value) -> Self {
        Self::Event(AgentEvent::ToolStarted { id: id.to_owned(), name: name.to_owned(), input })
    }

    pub(crate) fn tool_finished(id: &str, ok: bool, output: String) -> Self {
        Self::Event(AgentEvent::ToolFinished { id: id.to_owned(), ok, output })
    }
}

impl TurnResult {
    pub(crate) fn completed(text: Option<String>, usage: Usage) -> Self {
        Self { outcome: TurnOutcome::Completed, text, error: None, usage }
    }

    pub(crate) fn failed(error: &str, usage: Usage) -> Self {
        Self { outcome: TurnOutcome::Failed, text: None, error: Some(words::notice(error)), usage }
    }
}

/// Keeps the id that a program names as its conversation's, unless it contradicts one that is
/// known: a version of one program names an id on resume that does not exist on disk.
pub(crate) fn settle_id(known: &mut Option<String>, named: &str) -> Option<AgentOutput> {
    if known.is_some() || !words::is_id(named) {
        return None;
    }
    *known = Some(named.to_owned());
    Some(AgentOutput::Conversation(named.to_owned()))
}
