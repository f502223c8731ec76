//! The notes about every answer, whatever its shape.

use super::{CannotContinue, Rest};

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
