//! Asking: a conversation, and its last answer as it comes.

use jiff::Timestamp;
use protocol::{
    model_use::is_for_chat,
    room::{LlmMetrics, Status},
};

use super::{
    editor::Editor,
    event::{Piece, Target, Turn},
    room::Room,
};
use crate::text;

/// The most bytes of a prompt.
pub const MAX_PROMPT: usize = 64 * 1024;

/// The most bytes of an answer that are remembered; of a longer one, the end.
pub const MAX_ANSWER: usize = 128 * 1024;

/// The most turns of a conversation, and the most bytes of all of them, that are remembered; the oldest are forgotten.
pub const MOST_TURNS: usize = 100;
/// See [`MOST_TURNS`].
pub const MAX_CONVERSATION: usize = 256 * 1024;

/// Asking.
#[derive(Debug)]
pub struct Ask {
    /// The target of the question; `None` if there is no target yet.
    pub to: Option<Target>,
    /// Whether everybody who watches the room sees the answer.
    pub aloud: bool,
    /// The question that is typed.
    pub prompt: Editor,
    /// Whether keys go into the prompt.
    pub is_typing: bool,
    /// The answers before the last one, the oldest first.
    pub earlier: Vec<Answer>,
    /// The answer to the last question.
    pub answer: Option<Answer>,
    /// How many lines of the conversation are below what is shown.
    pub below: usize,
    next: u64,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            to: None,
            aloud: false,
            prompt: Editor::new(MAX_PROMPT),
            is_typing: false,
            earlier: Vec::new(),
            answer: None,
            below: 0,
            next: 0,
        }
    }
}

/// The progress of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It is awaited or arriving.
    Open,
    /// It is complete.
    Done,
    /// It failed before its end, for this reason.
    Failed(String),
    /// The user stopped it.
    Cancelled,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question's number.
    pub question: u64,
    /// The question.
    pub prompt: String,
    /// The text so far.
    pub text: String,
    /// Its progress.
    pub state: Progress,
    /// The time of the first piece, and of the whole answer, in milliseconds.
    first_ms: Option<u64>,
    total_ms: u64,
    asked_at: Timestamp,
    /// The number of pieces, and of tokens if the server reported them.
    pieces: u64,
    tokens: Option<u64>,
    metrics: Option<LlmMetrics>,
}

impl Ask {
    /// Begins a question. Returns its number.
    pub fn begin(&mut self, now: Timestamp) -> u64 {
        self.next += 1;
        self.below = 0;
        self.earlier.extend(self.answer.take());
        self.bound();
        self.answer = Some(Answer::new(self.next, self.prompt.text().trim(), now));
        self.next
    }

    /// The turns before the last question: the questions that got an answer, complete or not.
    pub fn before(&self) -> Vec<Turn> {
        let answered = self.earlier.iter().filter(|answer| !answer.text.trim().is_empty());
        let turn =
            |answer: &Answer| Turn { prompt: answer.prompt.clone(), answer: answer.text.clone() };
        answered.map(turn).collect()
    }

    /// Begins a new conversation, unless an answer is still waited for.
    pub fn forget(&mut self) {
        if !self.is_open() {
            self.earlier.clear();
            (self.answer, self.below) = (None, 0);
        }
    }

    fn bound(&mut self) {
        let bytes = |answer: &Answer| answer.prompt.len() + answer.text.len();
        let mut all: usize = self.earlier.iter().map(bytes).sum();
        while all > MAX_CONVERSATION || self.earlier.len() > MOST_TURNS {
            all -= bytes(&self.earlier.remove(0));
        }
    }

    /// Whether an answer is awaited or arriving.
    pub fn is_open(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.state == Progress::Open)
    }

    /// Takes a piece of an answer.
    pub fn take(&mut self, now: Timestamp, question: u64, piece: Piece) {
        let open =
            |answer: &&mut Answer| answer.question == question && answer.state == Progress::Open;
        if let Some(answer) = self.answer.as_mut().filter(open) {
            answer.take(now, piece);
        }
    }

    /// Stops the answer. Returns whether it was still awaited or arriving.
    pub fn cancel(&mut self) -> bool {
        let open = self.answer.as_mut().filter(|answer| answer.state == Progress::Open);
        open.map(|answer| answer.state = Progress::Cancelled).is_some()
    }
}

impl Answer {
    fn new(question: u64, prompt: &str, asked_at: Timestamp) -> Self {
        Self {
            question,
            prompt: prompt.to_owned(),
            text: String::new(),
            state: Progress::Open,
            first_ms: None,
            total_ms: 0,
            asked_at,
            pieces: 0,
            tokens: None,
            metrics: None,
        }
    }

    /// The metrics of the answer, as far as they are known.
    pub fn metrics(&self) -> LlmMetrics {
        // A server that reports no count mostly sends one token in each piece.
        let tokens = self.tokens.unwrap_or(self.pieces);
        self.metrics.unwrap_or(LlmMetrics {
            tokens,
            latency_first_token_ms: self.first_ms.unwrap_or(self.total_ms),
            duration_ms: self.total_ms,
            tokens_per_second: tokens as f64 * 1_000.0 / self.total_ms.max(1) as f64,
        })
    }

    /// Updates the time of an answer that is awaited or arriving.
    pub fn pass(&mut self, now: Timestamp) {
        if self.state == Progress::Open {
            let ms = now.duration_since(self.asked_at).as_millis();
            self.total_ms = u64::try_from(ms).unwrap_or(0);
        }
    }

    fn take(&mut self, now: Timestamp, piece: Piece) {
        self.pass(now);
        match piece {
            Piece::Text(piece) => self.append(&text::block(&piece)),
            Piece::Done { tokens, metrics } => {
                (self.tokens, self.metrics, self.state) = (tokens, metrics, Progress::Done);
            }
            Piece::Failed(reason) => self.state = Progress::Failed(text::line(&reason)),
        }
    }

    fn append(&mut self, piece: &str) {
        self.first_ms.get_or_insert(self.total_ms);
        self.pieces += 1;
        self.text.push_str(piece);
        // The beginning is dropped, since people look at the end.
        if self.text.len() > MAX_ANSWER {
            let from = self.text.ceil_char_boundary(self.text.len() - MAX_ANSWER);
            self.text.drain(..from);
        }
    }
}

/// All targets: the server's models, and in each watched room anybody, its models and its
/// participants.
pub fn targets(models: &[String], rooms: &[Room]) -> Vec<Target> {
    // Models for chat come first: the first target is the preselected one.
    let (chat, other): (Vec<_>, Vec<_>) = models.iter().partition(|model| is_for_chat(model));
    let models = chat.into_iter().chain(other);
    let server = models.map(|model| Target::Server { model: model.clone() });
    server.chain(rooms.iter().flat_map(of_room)).collect()
}

fn of_room(room: &Room) -> Vec<Target> {
    let models = room.models().into_iter().map(|model| format!("model:{model}"));
    let online = room.people.iter().filter(|who| who.status != Status::Offline);
    let people = online.map(|who| who.id.clone());
    let selectors = std::iter::once("*".to_owned()).chain(models).chain(people);
    let code = room.entry().code;
    selectors.map(|selector| Target::Room { code: code.clone(), selector }).collect()
}

/// A target in words.
pub fn label(target: &Target) -> String {
    match target {
        Target::Server { model } => format!("the server · {}", text::line(model)),
        Target::Room { code, selector } => {
            let whom = match selector.as_str() {
                "*" => "anybody".to_owned(),
                selector => text::line(selector),
            };
            format!("room {} · {whom}", text::line(code))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn begun_ask() -> Ask {
        let mut ask = Ask::default();
        ask.prompt.insert(" why? ");
        assert_eq!(ask.begin(at(1_000)), 1);
        ask
    }

    #[test]
    fn an_answer_is_measured_as_it_comes() {
        let mut ask = begun_ask();
        ask.take(at(1_100), 1, Piece::Text("be".to_owned()));
        ask.take(at(1_500), 1, Piece::Text("cause\u{1b}".to_owned()));
        ask.take(at(2_000), 1, Piece::Done { tokens: Some(4), metrics: None });
        ask.take(at(9_000), 1, Piece::Text("too late".to_owned()));
        let answer = ask.answer.unwrap();
        let metrics = answer.metrics();
        assert_eq!((answer.prompt.as_str(), answer.text.as_str()), ("why?", "because\u{fffd}"));
        assert_eq!((metrics.latency_first_token_ms, metrics.duration_ms), (100, 1_000));
        assert_eq!((metrics.tokens, metrics.tokens_per_second), (4, 4.0));
    }

    #[test]
    fn an_answer_to_another_question_is_ignored() {
        let mut ask = begun_ask();
        assert_eq!(ask.begin(at(0)), 2);
        ask.take(at(0), 1, Piece::Text("old".to_owned()));
        assert_eq!(ask.answer.as_ref().unwrap().text, "");
        assert!(ask.cancel() && !ask.cancel());
        ask.take(at(0), 2, Piece::Text("unwanted".to_owned()));
        assert_eq!(ask.answer.unwrap().text, "");
    }

    #[test]
    fn a_conversation_is_remembered_within_bounds_until_it_is_forgotten() {
        let mut ask = begun_ask();
        ask.take(at(1_100), 1, Piece::Text("because".to_owned()));
        ask.forget();
        assert!(ask.answer.is_some(), "it still arrives");
        ask.take(at(1_200), 1, Piece::Done { tokens: None, metrics: None });
        ask.begin(at(2_000));
        ask.take(at(2_100), 2, Piece::Failed("lost".to_owned()));
        ask.begin(at(3_000));
        let turn = Turn { prompt: "why?".to_owned(), answer: "because".to_owned() };
        assert_eq!(ask.before(), [turn], "a question without an answer is left out");
        for number in 4..8 {
            ask.take(at(4_000), number - 1, Piece::Text("x".repeat(MAX_ANSWER)));
            ask.begin(at(4_000));
        }
        assert_eq!(ask.earlier.len(), 1);
        for _ in 0..MOST_TURNS + 2 {
            ask.begin(at(5_000));
        }
        assert_eq!(ask.earlier.len(), MOST_TURNS);
        ask.cancel();
        ask.forget();
        assert_eq!((ask.earlier.len(), &ask.answer), (0, &None));
    }

    #[test]
    fn an_answer_is_bounded() {
        let mut ask = begun_ask();
        for _ in 0..40 {
            ask.take(at(1_100), 1, Piece::Text("日".repeat(4_000)));
        }
        assert!(ask.answer.unwrap().text.len() <= MAX_ANSWER);
    }
}
