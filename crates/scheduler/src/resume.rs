//! Answers that break off, and that other providers resume.

use std::sync::Arc;

use base::{Continuation, Endpoint, Endpoints};
use bytes::Bytes;

use crate::{exchange::traffic::Head, job::JobRequest, translate::Unreadable};

/// Records a streamed answer as it passes, in the shape in which it began, so that another provider
/// can resume it where it breaks off.
pub trait Record: Send {
    /// The shapes in which a provider can be asked to resume the answer.
    fn serve_as(&self) -> Endpoints;

    /// Whether a provider that answers with this head resumes the answer. Called once for each
    /// provider that is asked to.
    fn goes_on(&mut self, head: &Head) -> bool;

    /// Takes in bytes, and returns the events that are whole by now. Half an event is held back
    /// until its end comes, within a bound.
    ///
    /// # Errors
    /// [`Unreadable`] when the bytes make no sense as an answer, or as the rest of one.
    fn pass(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable>;

    /// The bytes that are still held back, once the provider has ended its answer.
    ///
    /// # Errors
    /// As [`Record::pass`].
    fn end(&mut self) -> Result<Bytes, Unreadable>;

    /// The missing rest of the answer. Finding that out reads all that has passed, so it is only
    /// called for an answer that has broken off.
    fn rest(&mut self) -> Rest;

    /// A copy of the record, for a provider that is to resume the answer.
    fn copy(&self) -> Box<dyn Record>;

    /// The request for a provider that is to resume the answer, and the record of what it sends.
    /// `request` is the one to which the answer began. The provider serves these endpoints and
    /// continues answers in the way `how`.
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
    /// More text is missing.
    Text(Delivered),
    /// The answer cannot be resumed; the text says why.
    No(String),
}

/// How much of an answer has passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Characters of its text.
    pub characters: u64,
    /// Its tokens, as far as known.
    pub tokens: u64,
}

/// The request for a provider that is to resume an answer.
pub struct NextRequest {
    /// The request.
    pub request: Arc<JobRequest>,
    /// The endpoint of the request.
    pub endpoint: Endpoint,
    /// Converts what this provider sends into the rest of the first provider's answer, and goes on
    /// recording.
    pub record: Box<dyn Record>,
}

/// Why there is no request for a provider that is to resume an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRequest {
    /// Only these closing bytes are missing: the answer is as long as it may be.
    Closing(Bytes),
    /// Answers to this request cannot be resumed, or not by this provider; the text says why.
    Refused(String),
}

/// A break in an answer, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The name of the provider that was lost.
    pub from: Arc<str>,
    /// The name of the provider that resumed the answer, if one did.
    pub to: Option<Arc<str>>,
    /// How much of the answer had passed.
    pub delivered: Delivered,
    /// The outcome.
    pub outcome: BreakOutcome,
    /// Why the answer could not be resumed, if that is the outcome.
    pub why: Option<String>,
}

/// The outcome of a break in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakOutcome {
    /// Another provider resumes the answer.
    Resumed,
    /// Only the end was missing, and was added here.
    Closed,
    /// The answer cannot be resumed.
    Refused,
    /// No provider resumed the answer in time, or the client left before one did.
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

    /// Whether the client still gets the whole answer, as far as this break is concerned.
    pub fn is_mended(self) -> bool {
        matches!(self, Self::Resumed | Self::Closed)
    }
}
