//! The parts of an answer, and the trait of writers of a client's shape.

use std::time::Duration;

use protocol::failure::{BadAnswer, Failure};
use serde_json::Value;

use super::chunk::Usage;
use crate::answer::Body;

/// Writes an answer in one client's shape. The calls come in the order given in the module's
/// documentation.
pub trait Writer: Send {
    /// The kind of body that the client gets, unless it is an error.
    fn body(&self) -> Body;

    /// The kind of body of an error.
    fn error_body(&self) -> Body {
        Body::Json
    }

    /// The provider sends a body of this kind.
    fn provider_body(&mut self, _: Body) {}

    /// How long ago the job was accepted; before each of the other calls. Most answers do not tell times.
    fn passed(&mut self, _since: Duration) {}

    /// The provider answers.
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    /// A part of the answer begins; the one before is closed.
    fn open(&mut self, part: &Part, out: &mut Vec<u8>);

    /// More of the open part: text, or a piece of a call's arguments. Never empty.
    fn delta(&mut self, text: &str, out: &mut Vec<u8>);

    /// The open part is complete.
    fn close(&mut self, _out: &mut Vec<u8>) {}

    /// The provider gives entries of `reasoning_details` that it wants back with the answer: signatures of
    /// its thoughts, or encrypted ones.
    fn seal(&mut self, _details: &[Value]) {}

    /// The provider gives the `extra_content` of a call, JSON that it wants back with the call; before the
    /// call is closed.
    fn extra(&mut self, _number: usize, _extra: &str) {}

    /// Ends a complete answer.
    ///
    /// # Errors
    /// [`BadAnswer`] when the parts do not make up an answer.
    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer>;

    /// A stream breaks off; a part may be open. Only called where [`Writer::body`] is a stream.
    fn fail(&mut self, _failure: &Failure, _out: &mut Vec<u8>) {}

    /// The body of an answer with an error status.
    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>);
}

/// The kind of a part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The model's thoughts before its text.
    Reasoning,
    /// The decoded message.
    Text,
    /// The reason why the model refuses.
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
    /// The model ended its text, or reached a stop sequence.
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
    /// The stop sequence that the model reached, if the backend reports it.
    pub stop_sequence: Option<String>,
    /// The usage, as far as the backend reports it.
    pub usage: Usage,
}
