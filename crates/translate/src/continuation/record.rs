//! The notes about every answer, whatever its shape; the missing rest, and why it cannot be had.

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

/// The delivered part of an answer, as far as it is the same in all shapes.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    /// The text.
    pub(super) text: String,
    /// The thoughts.
    pub(super) thoughts: String,
    /// How many pieces of thoughts came, and how many pieces of both.
    pub(super) thought_pieces: u64,
    pub(super) pieces: u64,
    /// The tokens of the answer as the provider reported them on the way.
    pub(super) reported_tokens: u64,
    /// Whether the reason of the end has passed.
    pub(super) finished: bool,
    /// Whether the last event has passed.
    pub(super) over: bool,
    /// Why it cannot be continued; the first reason.
    pub(super) reason: Option<CannotContinue>,
}

impl Record {
    /// Notes a piece of text.
    pub(super) fn add_text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.pieces += 1;
        }
    }

    /// Notes a piece of thoughts.
    pub(super) fn add_thoughts(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.thoughts.push_str(piece);
            self.pieces += 1;
            self.thought_pieces += 1;
        }
    }

    /// Notes why it cannot be continued, unless there is a reason already.
    pub(super) fn refuse(&mut self, reason: CannotContinue) {
        self.reason.get_or_insert(reason);
    }

    /// The tokens that were delivered: model servers send one piece for a token, or report them.
    pub(super) fn tokens(&self) -> u64 {
        self.pieces.max(self.reported_tokens)
    }

    /// Whether the model has said nothing yet: its answer may as well begin again.
    pub(super) fn says_nothing(&self) -> bool {
        self.pieces == 0
    }

    /// The rest that is missing.
    pub(super) fn rest(&self) -> Rest {
        match &self.reason {
            _ if self.over || self.finished => Rest::Nothing,
            Some(reason) => Rest::No(reason.clone()),
            None => Rest::Text,
        }
    }
}

/// Finds out whether a provider repeats the beginning that it was sent.
///
/// Only a piece that has all of the beginning counts, and only where that came in many pieces: a model that
/// repeats itself, as models do, sends it in as many pieces again.
#[derive(Debug)]
pub(super) struct Repetition {
    beginning: Option<String>,
}

/// In how many pieces the beginning came at least, for its repetition to be one.
const MANY: u64 = 8;

impl Repetition {
    /// Before the first piece of an answer that goes on with this beginning.
    pub(super) fn of(record: &Record) -> Self {
        let beginning =
            (record.pieces - record.thought_pieces >= MANY).then(|| record.text.clone());
        Self { beginning }
    }

    /// The piece, without the beginning.
    pub(super) fn without<'a>(&mut self, piece: &'a str) -> &'a str {
        if piece.is_empty() {
            return piece;
        }
        let Some(beginning) = self.beginning.take() else { return piece };
        piece.strip_prefix(&*beginning).unwrap_or(piece)
    }

    /// Takes the beginning off the piece.
    pub(super) fn cut(&mut self, piece: &mut String) {
        let repeated = piece.len() - self.without(piece).len();
        piece.drain(..repeated);
    }
}
