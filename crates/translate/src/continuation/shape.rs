//! The traits that the shapes of answers implement.

use std::fmt::Debug;

use base::Continuation;
use protocol::{
    failure::BadAnswer,
    json::{self, JsonReader},
};
use serde_json::{Map, Value};

use super::{CannotContinue, body::BodyEdits, record::Record};

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// The notes about a delivered answer that only its shape needs.
pub(super) trait Shape: Debug + Send + ShapeCopy {
    /// Reads the data of an event that was delivered.
    fn read(&mut self, data: &[u8], json: &mut JsonReader, record: &mut Record);

    /// The fields of a request that limit the tokens of its answer.
    fn limits(&self) -> &'static [&'static str];

    /// Puts the delivered part into the request for a provider that continues.
    fn append(
        &self,
        record: &Record,
        how: Continuation,
        edits: &mut BodyEdits<'_>,
    ) -> Result<(), CannotContinue>;

    /// Appends the events that end the answer as it stands.
    fn close(&self, record: &Record, out: &mut Vec<u8>);

    /// A stitch, which makes the rest of this answer from the next provider's.
    fn stitch(&self, record: &Record) -> Box<dyn Stitch>;
}

/// A copy of a shape's notes.
pub(super) trait ShapeCopy {
    fn copy(&self) -> Box<dyn Shape>;
}

impl<S: Shape + Clone + 'static> ShapeCopy for S {
    fn copy(&self) -> Box<dyn Shape> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Shape> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

/// Makes the rest of an answer from the next provider's events.
pub(super) trait Stitch: Debug + Send {
    /// Reads the data of one event, and appends what the client gets for it.
    fn event(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer>;

    /// Whether the answer has ended.
    fn is_over(&self) -> bool;
}

/// An event as an object.
pub(super) fn object(data: &[u8], json: &mut JsonReader) -> Result<Object, BadAnswer> {
    json.chunk(data).map_err(|error| {
        BadAnswer(format!("an event of the continuation is not understood: {error}"))
    })
}

/// Writes an event, with its `type` as its name.
pub(super) fn write_event(event: &Value, out: &mut Vec<u8>) {
    let name = event["type"].as_str().unwrap_or_default();
    out.extend_from_slice(format!("event: {name}\ndata: {}\n\n", json::write(event)).as_bytes());
}
