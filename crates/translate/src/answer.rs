//! The trait of an answer's translation, for every pair of shapes, and the context of a translation.

use std::time::Duration;

use protocol::failure::{BadAnswer, Failure, MAX_KEPT};

use crate::errors;

/// The context of a translation, beside the bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// 32 hex digits, unique to the job: ids of answers and of their parts are made of it.
    pub id: String,
    /// When the job was accepted, in seconds since 1970.
    pub created: u64,
    /// The model by the name that the client used, which the answer repeats.
    pub model: String,
    /// Whether the client asked for a stream. It gets one even if the provider answers with one
    /// object.
    pub streaming: bool,
}

/// Turns a provider's answer into the client's, piece by piece. Each attempt of a job has its own.
///
/// `head` comes first and once. Bytes of an answer that is not a stream are held until the end, up
/// to [`MAX_KEPT`](crate::MAX_KEPT).
pub trait Answer: Send {
    /// Takes the status and the kind of body of the provider's answer. Returns those of the
    /// client's.
    fn head(&mut self, status: u16, body: Body) -> (u16, Body);

    /// Takes how long ago the job was accepted. Called before each of the other calls; only a few APIs
    /// report times.
    fn passed(&mut self, _since: Duration) {}

    /// Reads the next bytes of the provider's answer, and appends the client's bytes to `out`. If it
    /// fails, what came before the fault is appended all the same.
    ///
    /// # Errors
    /// [`BadAnswer`] when they are invalid.
    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer>;

    /// Whether the client has its whole answer, or the error that ends it. Whatever the provider still
    /// sends is then ignored.
    fn is_over(&self) -> bool;

    /// Called when the provider's answer is complete. Appends the rest of the client's.
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
    /// JSON values, one a line, with Ollama's content type.
    NdJson,
}

/// Makes a client's answer, which is one object, from a provider's. The provider's answer is kept
/// until it is complete.
pub(crate) struct WholeAnswer<W> {
    status: u16,
    /// How long ago the job was accepted.
    since: Duration,
    body: Vec<u8>,
    /// Makes the body of an error.
    refuse: fn(u16, Vec<u8>) -> Vec<u8>,
    /// Makes the client's answer from the provider's.
    write: W,
}

impl<W: Fn(&[u8], Duration) -> Result<String, BadAnswer> + Send> WholeAnswer<W> {
    pub(crate) fn new(refuse: fn(u16, Vec<u8>) -> Vec<u8>, write: W) -> Self {
        Self { status: 200, since: Duration::ZERO, body: Vec::new(), refuse, write }
    }

    /// An answer in Gemini's API.
    pub(crate) fn for_gemini(write: W) -> Self {
        let refuse =
            |status, body: Vec<u8>| errors::for_gemini(status, &Failure::read(&body)).into_bytes();
        Self::new(refuse, write)
    }
}

impl<W: Fn(&[u8], Duration) -> Result<String, BadAnswer> + Send> Answer for WholeAnswer<W> {
    fn head(&mut self, status: u16, _: Body) -> (u16, Body) {
        self.status = status;
        (status, Body::Json)
    }

    fn passed(&mut self, since: Duration) {
        self.since = since;
    }

    fn feed(&mut self, chunk: &[u8], _: &mut Vec<u8>) -> Result<(), BadAnswer> {
        keep(&mut self.body, chunk)
    }

    fn is_over(&self) -> bool {
        false
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let body = std::mem::take(&mut self.body);
        if self.status >= 400 {
            out.append(&mut (self.refuse)(self.status, body));
        } else {
            out.extend_from_slice((self.write)(&body, self.since)?.as_bytes());
        }
        Ok(())
    }
}

/// Keeps more bytes of an answer.
pub(crate) fn keep(body: &mut Vec<u8>, chunk: &[u8]) -> Result<(), BadAnswer> {
    check_length(body.len() + chunk.len())?;
    body.extend_from_slice(chunk);
    Ok(())
}

/// Refuses an answer of which more than [`MAX_KEPT`] bytes would have to be kept.
pub(crate) fn check_length(bytes: usize) -> Result<(), BadAnswer> {
    if bytes > MAX_KEPT {
        return Err(BadAnswer(format!("the answer is longer than {MAX_KEPT} bytes")));
    }
    Ok(())
}
