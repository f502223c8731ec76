//! The events of a room, line by line.

use std::collections::VecDeque;

use protocol::room::{
    event::{LlmDone, LlmFailed, LlmStarted, Stage},
    message::LlmToken,
};

use crate::text;

/// The most lines that are remembered.
pub const MOST: usize = 1_000;

/// The most bytes of one answer that are remembered.
pub const MAX_ANSWER: usize = 4 * 1024;

/// The lines among which the beginning of an answer is searched for.
const NEAR: usize = 200;

/// The sort of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A participant joined, changed or left.
    People,
    /// A request was given to a participant.
    Request,
    /// An answer so far.
    Answer,
    /// An answer is complete.
    Done,
    /// A failure of a request, or of the room.
    Error,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its time by the server's clock, in milliseconds since 1970.
    pub at: u64,
    /// Its sort.
    pub sort: Sort,
    /// The participant or client that did it.
    pub who: String,
    /// The event in words.
    pub text: String,
    /// The request that the event belongs to.
    request: String,
}

/// The events of a room, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    lines: VecDeque<Line>,
    /// How many lines there were, the forgotten ones included.
    count: usize,
}

impl Activity {
    /// The lines, the oldest first.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &Line> + ExactSizeIterator {
        self.lines.iter()
    }

    /// How many lines there were so far, those that are forgotten by now included.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Notes that a participant joined, changed or left.
    pub fn people(&mut self, at: u64, who: &str, what: &str) {
        self.push(at, Sort::People, who, what.to_owned(), "");
    }

    /// Notes that a request was given to a participant.
    pub fn request(&mut self, at: u64, who: &str, started: &LlmStarted) {
        let what = format!("was asked for {}", text::line(&started.model));
        self.push(at, Sort::Request, who, what, &started.request_id);
    }

    /// A piece of an answer, appended to its earlier pieces.
    pub fn token(&mut self, at: u64, who: &str, token: &LlmToken) {
        let piece = text::block(&token.token);
        let id = &token.request_id;
        let mine = |line: &&mut Line| line.sort == Sort::Answer && line.request == *id;
        // Searched from the newest line on: lines of answers that come at the same time are close together.
        let begun = self.lines.iter_mut().rev().take(NEAR).find(mine);
        match begun.filter(|line| token.seq > 0 && line.who == who) {
            Some(line) => append(&mut line.text, &piece),
            None => self.push(at, Sort::Answer, who, piece, id),
        }
    }

    /// Notes that an answer is complete.
    pub fn done(&mut self, at: u64, who: &str, done: &LlmDone) {
        let metrics = done.metrics.as_spec();
        let took = metrics.duration_ms as f64 / 1_000.0;
        let what = match done.metrics.output_tokens {
            Some(tokens) => {
                format!("{tokens} tokens in {took:.1} s, {:.1}/s", metrics.tokens_per_second)
            }
            None => format!("answered in {took:.1} s"),
        };
        self.push(at, Sort::Done, who, what, &done.request_id);
    }

    /// Notes that an answer failed, or broke off.
    pub fn failed(&mut self, at: u64, who: &str, failed: &LlmFailed) {
        let when = match failed.stage {
            Stage::Dispatch => "before its answer",
            Stage::Stream => "in its answer",
        };
        let what = format!("failed {when}: {}", text::line(&failed.error));
        self.push(at, Sort::Error, who, what, &failed.request_id);
    }

    /// Notes a failure of the room.
    pub fn wrong(&mut self, at: u64, what: &str) {
        self.push(at, Sort::Error, "", text::line(what), "");
    }

    fn push(&mut self, at: u64, sort: Sort, who: &str, mut text: String, request: &str) {
        bound(&mut text);
        let (who, request) = (who.to_owned(), request.to_owned());
        self.lines.push_back(Line { at, sort, who, text, request });
        self.count += 1;
        if self.lines.len() > MOST {
            self.lines.pop_front();
        }
    }
}

/// Appends a piece. If the answer is too long, its end is kept, since people look at the end.
fn append(text: &mut String, piece: &str) {
    text.push_str(piece);
    if text.len() > MAX_ANSWER {
        let from = text.ceil_char_boundary(text.len() - MAX_ANSWER + "…".len());
        *text = format!("…{}", &text[from..]);
    }
}

fn bound(text: &mut String) {
    if text.len() > MAX_ANSWER {
        let end = text.floor_char_boundary(MAX_ANSWER - "…".len());
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(request: &str, seq: u64, token: &str) -> LlmToken {
        LlmToken {
            request_id: request.to_owned(),
            participant_id: "p".to_owned(),
            token: token.to_owned(),
            seq,
        }
    }

    fn texts(activity: &Activity) -> Vec<&str> {
        activity.lines().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn the_pieces_of_an_answer_are_one_line() {
        let mut activity = Activity::default();
        activity.token(1, "ada", &token("a", 0, "Hel"));
        activity.token(1, "bob", &token("b", 0, "other"));
        activity.token(1, "ada", &token("a", 1, "lo\u{1b}"));
        activity.token(1, "ada", &token("a", 0, "again"));
        assert_eq!(texts(&activity), ["Hello\u{fffd}", "other", "again"]);
    }

    #[test]
    fn lines_and_answers_are_bounded() {
        let mut activity = Activity::default();
        for _ in 0..MOST + 5 {
            activity.people(1, "ada", "joined");
        }
        assert_eq!(activity.lines().len(), MOST);
        activity.token(1, "ada", &token("a", 0, &"é".repeat(MAX_ANSWER)));
        for seq in 1..9 {
            activity.token(1, "ada", &token("a", seq, &"日".repeat(700)));
        }
        let last = activity.lines().next_back().unwrap();
        assert!(last.text.len() <= MAX_ANSWER && last.text.starts_with('…'), "{}", last.text.len());
    }
}
