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

    /// Takes how long ago the job was accepted. Called before each of the other calls; only a few APIs
    /// report times.
    fn passed(&mut self, _since: Duration) {}

    /// The answer begins.
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    /// A part of the answer begins; the one before is closed.
    fn open(&mut self, part: &Part, out: &mut Vec<u8>);

    /// More of the open part: text, or a piece of a call's arguments. Never empty.
    fn delta(&mut self, text: &str, out: &mut Vec<u8>);

    /// The open part is complete.
    fn close(&mut self, _out: &mut Vec<u8>) {}

    /// Takes entries of `reasoning_details` that the provider expects back in the next request: thoughts
    /// with signatures, or encrypted ones.
    fn seal(&mut self, _details: &[Value]) {}

    /// Takes the `extra_content` of a call: JSON that the provider expects back with the call. Comes
    /// before the call is closed.
    fn extra(&mut self, _number: usize, _extra: &str) {}

    /// Ends a complete answer.
    ///
    /// # Errors
    /// [`BadAnswer`] when the parts do not make up an answer.
    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer>;

    /// Ends a stream that breaks off; a part may be open. Only called if [`Writer::body`] is a
    /// stream.
    fn fail(&mut self, _failure: &Failure, _out: &mut Vec<u8>) {}

    /// The body of an answer with an error status.
    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>);
}

/// The kind of a part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The model's thoughts before its text.
    Reasoning,
    /// The text of the answer.
    Text,
    /// The reason why the model refuses.
    Refusal,
    /// A call of a tool. Its deltas together are its arguments, which should be a JSON object.
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
