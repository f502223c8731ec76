//! The notes that answers of all shapes share; the missing rest of an answer, and why it may not be
//! continued.

use protocol::json::BadRequest;

/// The missing rest of an answer that broke off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Nothing that a model would have to generate: [`closing`](super::closing) ends it.
    Nothing,
    /// Text, which another provider can continue.
    Text,
    /// A rest that no other provider can generate.
    No(CannotContinue),
}

/// Why an answer is not continued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotContinue {
    /// A call of a tool has begun. Half of its arguments cannot be continued, and after whole calls a model waits
    /// for their results.
    #[error("a call of a tool has begun")]
    ToolCall,
    /// The answer cites its sources. A request cannot give the citations back.
    #[error("it cites its sources")]
    Citations,
    /// The provider cannot continue in the middle of thoughts.
    #[error("it broke off within the model's thoughts")]
    Thoughts,
    /// The model refused to answer.
    #[error("the model has begun a refusal")]
    Refusal,
    /// Several answers were asked for.
    #[error("several answers are streamed at once")]
    SeveralChoices,
    /// The stream had an error.
    #[error("the provider has sent an error")]
    Failed,
    /// Too much was delivered: see [`MAX_TEXT`](super::MAX_TEXT) and [`MAX_HALF`](super::MAX_HALF).
    #[error("what was delivered is too long")]
    TooLong,
    /// The delivered part has pieces that are not understood.
    #[error("what was delivered is not understood")]
    NotUnderstood,
    /// The request has this field, whose effect holds for an answer as a whole.
    #[error("`{0}` is asked for")]
    Asked(&'static str),
    /// The client did not ask for a stream.
    #[error("the answer is no stream")]
    NoStream,
    /// The answer has as many tokens as it may: [`closing`](super::closing) ends it.
    #[error("it has as many tokens as it may have")]
    Full,
    /// Providers of this kind do not continue answers at this endpoint. See
    /// [`endpoint`](super::endpoint).
    #[error("the provider does not continue answers at this endpoint")]
    NotHere,
    /// The request cannot be read, or cannot be translated for the provider.
    #[error("{0}")]
    Request(#[from] BadRequest),
}

/// The notes about the delivered part of an answer that all shapes share.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    /// The text.
    pub(super) text: String,
    /// The thoughts.
    pub(super) thoughts: String,
    /// How many pieces of thoughts came, and how many pieces of thoughts and text together.
    pub(super) thought_pieces: u64,
    pub(super) pieces: u64,
    /// The tokens of the answer that the provider has reported so far.
    pub(super) reported_tokens: u64,
    /// Whether the finish reason was delivered.
    pub(super) finished: bool,
    /// Whether the last event was delivered.
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

    /// Notes why it cannot be continued. Only the first reason is kept.
    pub(super) fn refuse(&mut self, reason: CannotContinue) {
        self.reason.get_or_insert(reason);
    }

    /// The tokens that were delivered. Model servers send each token as a piece of its own, or
    /// report the number.
    pub(super) fn tokens(&self) -> u64 {
        self.pieces.max(self.reported_tokens)
    }

    /// Whether no text and no thoughts were delivered, so that the answer can simply begin again.
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

/// Finds out whether the next provider repeats the beginning that it was sent.
///
/// Only a first piece that contains the whole beginning counts, and only if the beginning came in many
/// pieces. A model that merely repeats its own words, as models do, would send them in many pieces again.
#[derive(Debug)]
pub(super) struct Repetition {
    beginning: Option<String>,
}

/// The fewest pieces in which the beginning must have come for that.
const MANY: u64 = 8;

impl Repetition {
    /// For an answer that continues this beginning, before its first piece.
    pub(super) fn of(record: &Record) -> Self {
        let beginning =
            (record.pieces - record.thought_pieces >= MANY).then(|| record.text.clone());
        Self { beginning }
    }

    /// The piece without the repeated beginning, if it has that.
    pub(super) fn without<'a>(&mut self, piece: &'a str) -> &'a str {
        if piece.is_empty() {
            return piece;
        }
        let Some(beginning) = self.beginning.take() else { return piece };
        piece.strip_prefix(&*beginning).unwrap_or(piece)
    }

    /// Removes the repeated beginning from the piece, if it has that.
    pub(super) fn cut(&mut self, piece: &mut String) {
        let repeated = piece.len() - self.without(piece).len();
        piece.drain(..repeated);
    }
}
