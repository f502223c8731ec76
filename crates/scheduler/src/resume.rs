//! Answers that break off, and that other providers go on with.

use std::sync::Arc;

use base::{Continuation, Endpoint, Endpoints};
use bytes::Bytes;

use crate::{exchange::traffic::Head, job::JobRequest, translate::Unreadable};

/// Records a streamed answer as it passes, in the shape in which it began, so that another provider can go on
/// where it breaks off.
pub trait Record: Send {
    /// The shapes in which a provider can be asked to go on.
    fn serve_as(&self) -> Endpoints;

    /// Whether a provider that answers with this head goes on. Called once for each provider that is to go on.
    fn goes_on(&mut self, head: &Head) -> bool;

    /// The events that are whole by now. Half an event is held back until its end comes, within a bound.
    ///
    /// # Errors
    /// [`Unreadable`] when the bytes are no answer of a provider that goes on.
    fn pass(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable>;

    /// The bytes that are still held back, once the provider has ended its answer.
    ///
    /// # Errors
    /// As [`Record::pass`].
    fn end(&mut self) -> Result<Bytes, Unreadable>;

    /// The rest that is missing. It reads what has passed, so it is only called for an answer that
    /// has broken off.
    fn rest(&mut self) -> Rest;

    /// The record as it is, for a provider that is to go on.
    fn copy(&self) -> Box<dyn Record>;

    /// The request for a provider that goes on, and the record of its answer. `request` is the one to which the
    /// answer began; the provider serves these endpoints and goes on in this way.
    ///
    /// # Errors
    /// [`NoRequest`] when there is none.
    fn request(
        self: Box<Self>,
        request: &Arc<JobRequest>,
        endpoints: Endpoints,
        how: Continuation,
    ) -> Result<NextRequest, NoRequest>;
}

/// The rest of an answer that has broken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Nothing but these closing bytes: everything else has passed.
    Closing(Bytes),
    /// More text.
    Text(Delivered),
    /// It cannot be gone on with; why.
    No(String),
}

/// How much of an answer has passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Characters of its text.
    pub characters: u64,
    /// Its tokens, as far as can be told.
    pub tokens: u64,
}

/// The request for a provider that goes on with an answer.
pub struct NextRequest {
    /// The request.
    pub request: Arc<JobRequest>,
    /// The endpoint of the request.
    pub endpoint: Endpoint,
    /// Makes the rest of the first provider's answer of this one's, and goes on recording.
    pub record: Box<dyn Record>,
}

/// Why there is no request for a provider that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRequest {
    /// Nothing is missing but these closing bytes: the answer is as long as it may be.
    Closing(Bytes),
    /// Answers to this request cannot be gone on with, or not by this provider; why.
    Refused(String),
}

/// A break in an answer, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The name of the provider that was lost.
    pub from: Arc<str>,
    /// The name of the provider that went on, if one did.
    pub to: Option<Arc<str>>,
    /// How much of the answer had passed.
    pub delivered: Delivered,
    /// The outcome.
    pub outcome: BreakOutcome,
    /// Why the answer could not be gone on with, where that is its outcome.
    pub why: Option<String>,
}

/// The outcome of a break in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakOutcome {
    /// Another provider goes on.
    Resumed,
    /// Only the end was missing, and was added here.
    Closed,
    /// The answer cannot be gone on with.
    Refused,
    /// No provider went on in time, or the client left meanwhile.
    GivenUp,
}

impl BreakOutcome {
    /// The outcome in one word, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Closed => "closed",
            Self::Refused => "refused",
            Self::GivenUp => "given_up",
        }
    }

    /// Whether the client gets the whole answer all the same, as far as this break goes.
    pub fn is_mended(self) -> bool {
        matches!(self, Self::Resumed | Self::Closed)
    }
}
