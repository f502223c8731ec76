//! The trait of a dialect, and its types.

use std::fmt;

use protocol::workspace::{AgentEvent, TurnOutcome};
use serde_json::Value;

use super::words;
use crate::agent::{
    launch::{Exit, Launch, Signal},
    usage::Usage,
};

/// How one kind of program is started, and the meaning of its output and input. Each session has its
/// own value, which stays when the program ends and is started again.
pub trait Dialect: fmt::Debug + Send {
    /// The provider's name.
    fn provider(&self) -> &str;

    /// Whether a process takes one prompt after the other. Otherwise it ends with its turn.
    fn is_warm(&self) -> bool {
        false
    }

    /// Whether a new process can resume the conversation.
    fn is_resumable(&self) -> bool {
        true
    }

    /// The usage of the whole conversation so far, for a program that reports totals and not the usage of
    /// each turn.
    fn used(&self) -> Option<Usage> {
        None
    }

    /// The command line that starts the program with a prompt. The state of an earlier process is
    /// dropped.
    fn launch(&mut self, start: Start<'_>) -> Launch;

    /// The input that gives a warm process its next prompt. `id` is the prompt's id, a UUID.
    fn prompt(&mut self, _text: &str, _id: &str) -> Vec<u8> {
        Vec::new()
    }

    /// Whether the program works on something that no prompt began, and that can be interrupted.
    fn is_working(&self) -> bool {
        false
    }

    /// The meaning of a line of output, which is a JSON object.
    fn parse(&mut self, line: &Value) -> ParsedLine;

    /// The meaning of a line whose long texts were cut. `whole` is the whole line, unless it is very long.
    fn parse_cut(&mut self, line: &Value, _whole: Option<&str>) -> ParsedLine {
        self.parse(line)
    }

    /// The way to end the running turn.
    fn interrupt(&mut self) -> Halt;

    /// The input that answers an [`AgentOutput::Ask`]. Each request gets one answer.
    fn answer(&mut self, _key: &str, _decision: Decision<'_>) -> Vec<u8> {
        Vec::new()
    }

    /// The dialect's state without its settings, for [`Dialect::restore`].
    fn state(&self) -> Value;

    /// Takes over the state of a dialect with the same settings, whose process still runs. Returns false if
    /// `state` is not a state of this dialect.
    fn restore(&mut self, state: Value) -> bool;

    /// The meaning of the process's end within a turn. `tail` is the end of its output that was not JSON.
    /// If no [`AgentOutput::Ended`] is among the returned items, the turn has failed.
    fn exited(&mut self, exit: Exit, tail: &str) -> Vec<AgentOutput>;
}

/// How a process is started.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The conversation to resume; `None` begins a new one.
    pub conversation: Option<&'a str>,
    /// The first prompt.
    pub prompt: &'a str,
    /// The prompt's id, a UUID. No other prompt of the conversation has it.
    pub id: &'a str,
}

/// The meaning of a line.
#[derive(Debug, Default)]
pub struct ParsedLine {
    /// The items of the line, in order.
    pub outputs: Vec<AgentOutput>,
    /// Whether the line shows progress, which keeps a turn alive. An unknown line shows none, and neither
    /// does a line that only reports that the agent waits for something.
    pub is_progress: bool,
}

/// An item of a program's output.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentOutput {
    /// An event.
    Event(AgentEvent),
    /// The id of the conversation from now on.
    Conversation(String),
    /// A request for permission to use a tool.
    Ask {
        /// The request's name in this dialect.
        key: String,
        /// The tool's name.
        tool: String,
        /// The tool's input.
        input: Value,
    },
    /// A request for permission was withdrawn.
    AskCancelled {
        /// As in [`AgentOutput::Ask`].
        key: String,
    },
    /// These bytes must be written to the program's input.
    Write(Vec<u8>),
    /// The answer is complete; the process should end now.
    Leaving,
    /// The turn is over.
    Ended(TurnResult),
    /// The program does not know the conversation that it should resume.
    ResumeRefused,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// Its outcome.
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
    /// By writing these bytes to its input.
    Write(Vec<u8>),
    /// By a signal.
    Signal(Signal),
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The tool may be used.
    Allow,
    /// The tool may not be used, for this reason.
    Deny(&'a str),
    /// The turn was interrupted before anybody decided.
    Cancelled,
}

impl ParsedLine {
    /// A line that shows progress.
    pub(crate) fn progress(outputs: Vec<AgentOutput>) -> Self {
        Self { outputs, is_progress: true }
    }

    pub(crate) fn waiting(outputs: Vec<AgentOutput>) -> Self {
        Self { outputs, is_progress: false }
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

/// Keeps the conversation's id as the program reports it, unless an id is already known: after a resume,
/// one version of a program reports an id that does not exist on disk.
pub(crate) fn settle_id(known: &mut Option<String>, named: &str) -> Option<AgentOutput> {
    if known.is_some() || !words::is_id(named) {
        return None;
    }
    *known = Some(named.to_owned());
    Some(AgentOutput::Conversation(named.to_owned()))
}
