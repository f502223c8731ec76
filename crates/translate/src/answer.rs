//! The trait of an answer's translation, for every pair of shapes.

use std::time::Duration;

use protocol::failure::BadAnswer;

/// Turns a provider's answer into the client's, piece by piece. One for each attempt.
///
/// `head` comes first and once. Bytes of an answer that is not a stream are held until the end, up
/// to [`MAX_KEPT`](crate::MAX_KEPT).
pub trait Answer: Send {
    /// The status and the kind of body that come: the status and kind that the client gets.
    fn head(&mut self, status: u16, body: Body) -> (u16, Body);

    /// How long ago the job was accepted; before each of the other calls. Most answers do not tell times.
    fn passed(&mut self, _since: Duration) {}

    /// Reads the next bytes of the provider's answer; appends the client's bytes to `out`, also those of
    /// what comes before an error.
    ///
    /// # Errors
    /// [`BadAnswer`] when they are invalid.
    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer>;

    /// Whether the client has its whole answer, or the error that ends it: nothing that the provider may
    /// still send belongs to it.
    fn is_over(&self) -> bool;

    /// The provider's answer is complete; appends the rest of the client's.
    ///
    /// # Errors
    /// As [`Answer::feed`].
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer>;
}

impl<A: Answer + ?Sized> Answer for Box<A> {
    fn head(&mut self, status: u16, body: Body) -> (u16, Body) {
        (**self).head(status, body)
    }

    fn passed(&mut self, since: Duration) {
        (**self).passed(since);
    }

    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        (**self).feed(chunk, out)
    }

    fn is_over(&self) -> bool {
        (**self).is_over()
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        (**self).end(out)
    }
}

/// The kind of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// One JSON value.
    Json,
    /// A stream of events.
    Events,
    /// A JSON array that is streamed, each element in a line (Gemini's API).
    Array,
    /// JSON values, one a line (the node protocol's consumer side).
    Lines,
    /// JSON values, one a line, by the name that Ollama gives them.
    NdJson,
}
