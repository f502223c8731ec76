//! One API's requests for another API's servers, and their answers back: a folder for each pair,
//! named by the client's shape and then the provider's.
//!
//! Everything here is pure: a request is mapped whole, an answer piece by piece as it comes. Chat
//! Completions is the shape that every other one can be put into; two pairs make the rest.
//!
//! Each pair is two functions:
//!
//! - `pub fn request(body: &[u8], context: &Context) -> Result<Vec<u8>, BadRequest>`
//! - `pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<>`, where `request` is
//!   the client's own body, of which an answer repeats parts
//!
//! Callers take [`route`], [`request`] and [`answer`], which know every pair and how two of them
//! make a way: a Messages client of a provider that has only Responses is read as Chat Completions
//! in between.
//!
//! - [`registry`]: which endpoint serves which shape, and what maps the bytes
//! - [`events`]: a stream of events, read incrementally
//! - [`chat`]: the Chat Completions answer of any backend, as every pair reads it
//! - [`tokens`]: how many tokens a text has, estimated
//! - [`messages_chat`], [`chat_messages`]: Messages and Chat Completions
//! - [`responses_chat`], [`chat_responses`]: Responses and Chat Completions
//! - [`completions_chat`]: legacy Completions for Chat Completions
//! - [`chat_node`]: Chat Completions for a model node, which has no endpoint
//! - [`node_chat`]: the node protocol's consumers for Chat Completions
//! - `fields`: the parts of a request, with the path of the one that is wrong
//! - `from_chat`: a Chat Completions request, as every pair reads it
//! - `errors`: a backend's error for a client of OpenAI's APIs

pub mod chat;
pub mod chat_messages;
pub mod chat_node;
pub mod chat_responses;
pub mod completions_chat;
mod errors;
pub mod events;
pub(crate) mod fields;
mod from_chat;
pub mod messages_chat;
pub mod node_chat;
pub mod registry;
pub mod responses_chat;
pub mod tokens;

pub use registry::{answer, request, route, served_as};

/// What a translation knows beside the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// 32 hex digits, unique to the job: ids of answers and of their parts are made of it.
    pub id: String,
    /// When the job was accepted, in seconds since 1970.
    pub created: u64,
    /// The model by the name that the client used, which the answer repeats.
    pub model: String,
    /// Whether the client asked for a stream. It gets one even of a provider that answers whole.
    pub streaming: bool,
}

/// A request that cannot be carried over, told to the client with status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadRequest {
    /// The parameter that is at fault, as a path such as `messages[2].content`.
    pub param: Option<String>,
    /// What is wrong with it, and what to do.
    pub message: String,
}

impl BadRequest {
    /// A fault of one parameter.
    pub fn new(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), message: message.into() }
    }
}

/// An answer that makes no sense in the shape that it should have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAnswer(pub String);

/// Makes the client's answer of a provider's, piece by piece. One for each attempt.
///
/// `head` comes first and once. Bytes of an answer that is no stream are kept until the end, up to
/// [`MAX_KEPT`].
pub trait Answer: Send {
    /// The status and the kind of body that come: the status and kind that the client gets.
    fn head(&mut self, status: u16, body: Body) -> (u16, Body);

    /// The next bytes of the provider's answer; appends what the client gets for them.
    ///
    /// # Errors
    /// [`BadAnswer`] when they make no sense.
    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer>;

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

    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        (**self).feed(chunk, out)
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
    /// JSON values, one a line (the node protocol's consumer side).
    Lines,
}

/// The most that is kept of an answer before it is translated, in bytes.
pub const MAX_KEPT: usize = 64 * 1024 * 1024;
