//! What each of the shapes has to know.

use std::fmt::Debug;

use base::Continuation;
use protocol::{failure::BadAnswer, json::JsonReader};
use serde_json::{Map, Value};

use super::{CannotContinue, record::Record};

/// An object of JSON.
pub(super) type Object = Map<String, Value>;

/// What was delivered of an answer, in one shape.
pub(super) trait Shape: Debug + Send + Copied {
    /// Reads the data of an event that passed.
    fn read(&mut self, data: &[u8]);

    /// What all shapes note.
    fn record(&self) -> &Record;

    /// The same, to change it.
    fn record_mut(&mut self) -> &mut Record;

    /// The body for a provider that goes on. There is something to go on with.
    fn request(&self, body: &[u8], how: Continuation) -> Result<Vec<u8>, CannotContinue>;

    /// Appends the events that end the answer as it is.
    fn close(&self, out: &mut Vec<u8>);

    /// What makes the rest of this answer of the next provider's.
    fn stitch(&self) -> Box<dyn Stitch>;
}

/// A copy of a shape's notes.
pub(super) trait Copied {
    fn copied(&self) -> Box<dyn Shape>;
}

impl<S: Shape + Clone + 'static> Copied for S {
    fn copied(&self) -> Box<dyn Shape> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Shape> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}

/// Makes the rest of an answer of the next provider's events.
pub(super) trait Stitch: Debug + Send {
    /// Reads the data of one event; appends what the client gets of it.
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
