//! Prompts that tell their answers, and how long one may take.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Random;

/// A prompt that no other client sends: where it is sent, and a number that only rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce {
    /// The number of the room, or of the machine.
    pub at: usize,
    pub number: u64,
}

impl Nonce {
    /// As a prompt, or as the id of a request.
    pub fn text(self) -> String {
        format!("n{}-{}", self.at, self.number)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (at, number) = text.strip_prefix('n')?.split_once('-')?;
        Some(Self { at: at.parse().ok()?, number: number.parse().ok()? })
    }

    pub fn in_chat(body: &Value) -> Option<Self> {
        Self::parse(body["messages"].as_array()?.last()?["content"].as_str()?)
    }

    /// The pieces of text of its answer. Each begins with the prompt and has `end` before its semicolon.
    pub fn pieces(self, end: String) -> impl Iterator<Item = String> {
        (0..=self.number % 24).map(move |part| format!("{}.{part}{end};", self.text()))
    }
}

/// A streamed chat of these pieces. Every chunk has the given fields, too.
pub fn chat_stream(pieces: impl Iterator<Item = String>, fields: &Value) -> String {
    let delta = |piece| (json!({"content": piece}), Value::Null);
    let events = pieces.map(delta).chain([(json!({}), json!("stop"))]).map(|(delta, reason)| {
        let mut chunk = fields.clone();
        chunk["object"] = json!("chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        format!("data: {chunk}\n\n")
    });
    events.collect::<String>() + "data: [DONE]\n\n"
}

/// The events of a stream, without the comments between them: signs of life.
pub fn without_comments(stream: &str) -> String {
    stream.split_inclusive("\n\n").filter(|event| !event.starts_with(':')).collect()
}

pub fn chat_whole(content: &str, fields: &Value) -> Value {
    let message = json!({"role": "assistant", "content": content});
    let mut whole = fields.clone();
    whole["object"] = json!("chat.completion");
    whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
    whole
}

pub fn cut(bytes: &[u8], longest: u64, random: &mut Random) -> Vec<Vec<u8>> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let length = (1 + random.below(longest) as usize).min(rest.len());
        let (piece, after) = rest.split_at(length);
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

#[derive(Debug)]
pub struct Patience {
    /// In queues, for absent providers and for busy ones.
    pub queue: Duration,
    /// For the beginning of an answer, at each provider.
    pub request: Duration,
    /// For more of an answer.
    pub idle: Duration,
    /// How often a request goes on to another provider.
    pub requeues: u32,
}

impl Patience {
    /// The longest that a request takes: it may meet a frozen provider at each of its tries.
    pub const fn longest(&self) -> Duration {
        let tries = self.request.saturating_mul(1 + self.requeues);
        let queues = self.queue.saturating_mul(2);
        queues.saturating_add(tries).saturating_add(self.idle)
    }

    pub fn flags(&self) -> [(&'static str, String); 5] {
        let seconds = |time: Duration| time.as_secs().to_string();
        [
            ("--queue-timeout-secs", seconds(self.queue)),
            ("--busy-timeout-secs", seconds(self.queue)),
            ("--request-timeout-secs", seconds(self.request)),
            ("--idle-timeout-secs", seconds(self.idle)),
            ("--max-requeue-count", self.requeues.to_string()),
        ]
    }
}
