//! Reads an answer piece by piece, in either of its two forms: the spec's messages, or the events
//! of Chat Completions.
//!
//! Pure: bytes and the time in, pieces out.

use std::time::Duration;

use base::millis;
use protocol::room::{
    LlmMetrics, ServerMessage,
    message::{LlmComplete, LlmError, LlmToken},
};
use serde::Deserialize;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text.
    Text {
        /// The answering participant; empty where the server does not say.
        participant: String,
        /// The text.
        text: String,
    },
    /// A piece of the model's thoughts before it answers.
    Thought(String),
    /// The answer is complete.
    Done {
        /// The participant that answered; empty where the server does not say.
        participant: String,
        /// Its tokens and times.
        metrics: LlmMetrics,
    },
    /// The answer ended before it was complete, for this reason.
    Failed(String),
}

/// Reads an answer whose request was sent at time 0.
#[derive(Debug, Clone, Default)]
pub struct AnswerReader {
    /// When the first text came.
    first: Option<Duration>,
    /// Pieces of text so far.
    pieces: u64,
    /// The number of tokens that the answer itself reports.
    reported_tokens: Option<u64>,
    prompt_tokens: Option<u64>,
    model: Option<String>,
    finish_reason: Option<String>,
    over: bool,
}

/// The fields of an event of Chat Completions that are read here.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    model: Option<String>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    /// As DeepSeek, llama.cpp and vLLM name thoughts.
    reasoning_content: Option<String>,
    /// As Ollama and OpenRouter name them.
    reasoning: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

impl AnswerReader {
    /// Takes the data of the next event, which came at `now`, and returns its pieces in order. There are none
    /// if the event has no content, or if this version does not know the event.
    pub fn take(&mut self, data: &[u8], now: Duration) -> Vec<Piece> {
        if data == b"[DONE]" {
            return self.done(String::new(), now).into_iter().collect();
        }
        match serde_json::from_slice(data) {
            Ok(message) => self.message(message).into_iter().collect(),
            Err(_) => {
                serde_json::from_slice(data).map_or_else(|_| vec![], |it| self.chunk(it, now))
            }
        }
    }

    /// Notes that the stream has ended at `now`. Returns a failure if the answer was not complete. Some
    /// backends send the reason why the model stopped, but no end after it: such an answer is complete, and
    /// its end is returned.
    pub fn end(&mut self, now: Duration) -> Option<Piece> {
        if self.finish_reason.is_some() {
            return self.done(String::new(), now);
        }
        let words = "the answer broke off: the connection ended before it was whole";
        (!self.over).then(|| Piece::Failed(words.to_owned()))
    }

    /// The model that answers, if the answer names it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Why the model stopped, as the answer says it: `stop`, or `length` at its limit of tokens.
    pub fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_deref()
    }

    /// The tokens read and written, as far as the answer reports them.
    pub fn tokens(&self) -> (Option<u64>, Option<u64>) {
        (self.prompt_tokens, self.reported_tokens)
    }

    fn message(&mut self, message: ServerMessage) -> Option<Piece> {
        match message {
            ServerMessage::LlmToken(LlmToken { participant_id, token, .. }) => {
                Some(Piece::Text { participant: participant_id, text: token })
            }
            ServerMessage::LlmComplete(LlmComplete { participant_id, metrics, .. }) => {
                self.conclude().then_some(Piece::Done { participant: participant_id, metrics })
            }
            ServerMessage::LlmError(LlmError { error, .. }) => self.failed(error),
            ServerMessage::RoomError(room) => self.failed(room.error),
            _ => None,
        }
    }

    fn chunk(&mut self, chunk: Chunk, now: Duration) -> Vec<Piece> {
        if let Some(error) = chunk.error {
            let words = error["message"].as_str().or_else(|| error.as_str());
            let words = words.unwrap_or("the answer ended with an error").to_owned();
            return self.failed(words).into_iter().collect();
        }
        if let Some(usage) = chunk.usage {
            self.reported_tokens = usage.completion_tokens.or(self.reported_tokens);
            self.prompt_tokens = usage.prompt_tokens.or(self.prompt_tokens);
        }
        self.model = self.model.take().or(chunk.model);
        let Some(choice) = chunk.choices.into_iter().next() else { return Vec::new() };
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        choice.delta.map_or_else(Vec::new, |delta| self.delta(delta, now))
    }

    fn delta(&mut self, delta: Delta, now: Duration) -> Vec<Piece> {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        // Some servers send the same thought in both fields, so only one of them is read.
        let thought = some(delta.reasoning_content).or(some(delta.reasoning)).map(Piece::Thought);
        let text = some(delta.content).map(|text| Piece::Text { participant: String::new(), text });
        // The chunk in which a model begins to answer may also hold the end of its thoughts. The thoughts
        // come first.
        let pieces: Vec<Piece> = thought.into_iter().chain(text).collect();
        if !pieces.is_empty() {
            self.first.get_or_insert(now);
            self.pieces += pieces.len() as u64;
        }
        pieces
    }

    fn failed(&mut self, words: String) -> Option<Piece> {
        self.conclude().then_some(Piece::Failed(words))
    }

    /// Notes an end of the answer. Returns whether it is the first: most answers end twice, by an event and by
    /// the end of their stream, and only the first end counts.
    fn conclude(&mut self) -> bool {
        !std::mem::replace(&mut self.over, true)
    }

    fn done(&mut self, participant: String, now: Duration) -> Option<Piece> {
        if !self.conclude() {
            return None;
        }
        let tokens = self.reported_tokens.unwrap_or(self.pieces);
        // An answer within the same millisecond would have an endless rate.
        let seconds = now.as_secs_f64().max(0.001);
        let metrics = LlmMetrics {
            tokens,
            latency_first_token_ms: millis(self.first.unwrap_or(now)),
            duration_ms: millis(now),
            tokens_per_second: tokens as f64 / seconds,
        };
        Some(Piece::Done { participant, metrics })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn text(participant: &str, text: &str) -> Piece {
        Piece::Text { participant: participant.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn an_answer_in_messages_is_read() {
        let mut reader = AnswerReader::default();
        let token =
            br#"{"type":"llm:token","requestId":"1","participantId":"p","token":"Hi","seq":0}"#;
        assert_eq!(reader.take(token, at(1)), [text("p", "Hi")]);
        assert_eq!(reader.take(br#"{"type":"llm:accepted"}"#, at(1)), []);
        assert!(matches!(reader.end(at(1)), Some(Piece::Failed(_))));
        let done = br#"{"type":"llm:complete","requestId":"1","participantId":"p","metrics":
            {"tokens":1,"latencyFirstTokenMs":2,"durationMs":3,"tokensPerSecond":4.5}}"#;
        let [Piece::Done { participant, metrics }] = &reader.take(done, at(2))[..] else {
            panic!()
        };
        assert_eq!((participant.as_str(), metrics.tokens, metrics.duration_ms), ("p", 1, 3));
        assert_eq!(reader.end(at(2)), None);
        let failed = br#"{"type":"llm:error","requestId":"1","participantId":"","error":"no"}"#;
        let mut other = AnswerReader::default();
        assert_eq!(other.take(failed, at(3)), [Piece::Failed("no".to_owned())]);
        let error = br#"{"error":"lost"}"#;
        for late in [&failed[..], &done[..], &error[..], b"[DONE]"] {
            assert_eq!((reader.take(late, at(3)), other.take(late, at(3))), (vec![], vec![]));
        }
    }

    #[test]
    fn an_answer_in_chat_events_is_read_and_measured() {
        let mut reader = AnswerReader::default();
        let role = br#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#;
        assert_eq!(reader.take(role, at(5)), []);
        let said = br#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
        assert_eq!(reader.take(said, at(100)), [text("", "Hi")]);
        let usage = br#"{"choices":[],"usage":{"completion_tokens":8}}"#;
        assert_eq!(reader.take(usage, at(400)), []);
        let [Piece::Done { metrics, .. }] = &reader.take(b"[DONE]", at(500))[..] else { panic!() };
        let expected = LlmMetrics {
            tokens: 8,
            latency_first_token_ms: 100,
            duration_ms: 500,
            tokens_per_second: 16.0,
        };
        assert_eq!(metrics, &expected);
        assert_eq!((reader.take(b"[DONE]", at(600)), reader.end(at(700))), (vec![], None));
    }

    #[test]
    fn thoughts_and_the_reason_of_the_end_are_read() {
        let mut reader = AnswerReader::default();
        let thought =
            |name: &str| format!(r#"{{"model":"m","choices":[{{"delta":{{"{name}":"hm"}}}}]}}"#);
        for name in ["reasoning_content", "reasoning"] {
            let pieces = reader.take(thought(name).as_bytes(), at(1));
            assert_eq!(pieces, [Piece::Thought("hm".to_owned())]);
        }
        let last = br#"{"choices":[{"delta":{},"finish_reason":"length"}],
            "usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
        assert_eq!(reader.take(last, at(2)), []);
        assert!(matches!(reader.end(at(3)), Some(Piece::Done { .. })), "without [DONE]");
        assert_eq!((reader.model(), reader.finish_reason()), (Some("m"), Some("length")));
        assert_eq!((reader.tokens(), reader.end(at(4))), ((Some(3), Some(2)), None));
    }

    #[test]
    fn a_chunk_with_a_thought_and_text_is_both_in_this_order() {
        let mut reader = AnswerReader::default();
        let both = br#"{"choices":[{"delta":{"content":"Hi","reasoning":"hm"}}]}"#;
        let expected = [Piece::Thought("hm".to_owned()), text("", "Hi")];
        assert_eq!(reader.take(both, at(7)), expected);
        let [Piece::Done { metrics, .. }] = &reader.take(b"[DONE]", at(9))[..] else { panic!() };
        assert_eq!((metrics.tokens, metrics.latency_first_token_ms), (2, 7));
    }

    #[test]
    fn without_a_count_pieces_are_counted_and_an_error_ends_it() {
        let mut reader = AnswerReader::default();
        for _ in 0..3 {
            reader.take(br#"{"choices":[{"delta":{"content":"a"}}]}"#, at(1));
        }
        let [Piece::Done { metrics, .. }] = &reader.take(b"[DONE]", at(1))[..] else { panic!() };
        assert_eq!(metrics.tokens, 3);
        for error in [r#"{"error":{"message":"lost"}}"#, r#"{"error":"lost"}"#] {
            let mut reader = AnswerReader::default();
            let pieces = reader.take(error.as_bytes(), at(1));
            let failed = vec![Piece::Failed("lost".to_owned())];
            assert_eq!((pieces, reader.end(at(2))), (failed, None));
        }
        for odd in ["", "null", "[]", "{", "{}", r#"{"choices":[{}]}"#] {
            assert_eq!(AnswerReader::default().take(odd.as_bytes(), at(1)), [], "{odd}");
        }
    }
}
