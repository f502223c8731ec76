//! The missing rest of an answer, and why it cannot be had.

use protocol::json::BadRequest;

/// The missing rest of an answer that broke off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Nothing that a model would have to say: [`closing`](super::closing) ends it.
    Nothing,
    /// Text, which another provider can go on with.
    Text,
    /// A rest that no other provider can give.
    No(CannotContinue),
}

/// Why an answer is not continued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotContinue {
    /// A call of a tool has begun: half of its arguments cannot be continued, and a model that has made whole calls
    /// waits for their results.
    #[error("a call of a tool has begun")]
    ToolCall,
    /// The provider cannot go on in the middle of thoughts.
    #[error("it broke off within the model's thoughts")]
    Thoughts,
    /// The model refused to answer.
    #[error("the model has begun a refusal")]
    Refusal,
    /// Several answers were asked for.
    #[error("several answers are streamed at once")]
    SeveralChoices,
    /// The stream has had an error.
    #[error("the provider has sent an error")]
    Failed,
    /// Too much passed on: see [`MAX_TEXT`](super::MAX_TEXT) and [`MAX_HALF`](super::MAX_HALF).
    #[error("what was delivered is too long")]
    TooLong,
    /// The delivered part has pieces that are not understood.
    #[error("what was delivered is not understood")]
    NotUnderstood,
    /// The request has this field, with which no answer is continued: what it asks for holds for an answer as a whole.
    #[error("`{0}` is asked for")]
    Asked(&'static str),
    /// The client did not ask for a stream.
    #[error("the answer is no stream")]
    NoStream,
    /// The answer has as many tokens as it may: [`closing`](super::closing) ends it.
    #[error("it has as many tokens as it may have")]
    Full,
    /// Providers of this kind do not go on at this endpoint. See [`endpoint`](super::endpoint).
    #[error("the provider does not continue answers at this endpoint")]
    NotHere,
    /// The request cannot be read, or cannot be translated for the provider.
    #[error("{0}")]
    Request(#[from] BadRequest),
}
