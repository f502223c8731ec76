//! What an answer is made of, and what writes one in a client's shape.

use protocol::failure::{BadAnswer, Failure};

use super::chunk::Usage;
use crate::answer::Body;

/// Writes an answer in one client's shape. Calls come in the order that the module tells.
pub trait Writer: Send {
    /// The kind of body that the client gets, unless it is an error.
    fn body(&self) -> Body;

    /// The provider answers.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// A part of the answer begins; the one before is closed.
    fn open(&mut self, part: &Part, out: &mut Vec<u8>);

    /// More of the open part: text, or a piece of a call's arguments. Never empty.
    fn delta(&mut self, text: &str, out: &mut Vec<u8>);

    /// The open part is complete.
    fn close(&mut self, out: &mut Vec<u8>);

    /// The answer is complete.
    ///
    /// # Errors
    /// [`BadAnswer`] when what has come makes no answer.
    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer>;

    /// A stream breaks off; a part may be open. Only called where [`Writer::body`] is a stream.
    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>);

    /// The body of an answer with an error status.
    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>);
}

/// What an answer is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// What the model thought before it spoke.
    Reasoning,
    /// The decoded message.
    Text,
    /// Why it does not say more.
    Refusal,
    /// A call of a tool; its deltas are its arguments, which should be a JSON object together.
    Call {
        /// The provider's id for the call; empty when it gave none.
        id: String,
        /// The tool.
        name: String,
        /// Counts the calls of the answer from 0.
        number: usize,
    },
}

/// Why an answer is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model has said what it wanted to, or came to a stop sequence.
    Stop,
    /// The limit of tokens, or the end of the context.
    Length,
    /// It calls tools.
    ToolCalls,
    /// A filter stopped it.
    ContentFilter,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended.
    pub finish: Finish,
    /// The stop sequence that the model came to, where the backend tells.
    pub stop_sequence: Option<String>,
    /// What it cost, as far as the backend tells.
    pub usage: Usage,
}
