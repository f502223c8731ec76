//! What a prompt is answered with: it follows from the prompt, so that every client knows what it
//! has to get, and that nobody else's answer is it.

use serde_json::{Value, json};

/// What a client says, which no other says: where it says it, and a number that only rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonce {
    pub(crate) room: usize,
    pub(crate) number: u64,
}

impl Nonce {
    /// As a prompt, or as the id of an `llm:request`.
    pub(crate) fn text(self) -> String {
        format!("n{}-{}", self.room, self.number)
    }

    /// Reads it again.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (room, number) = text.strip_prefix('n')?.split_once('-')?;
        Some(Self { room: room.parse().ok()?, number: number.parse().ok()? })
    }

    /// The pieces of text of its answer.
    pub(crate) fn pieces(self) -> Vec<String> {
        (0..=self.number % 24).map(|part| format!("{}.{part};", self.text())).collect()
    }

    /// Its whole answer, as a stream.
    pub(crate) fn stream(self) -> String {
        let deltas = self
            .pieces()
            .into_iter()
            .map(|piece| json!({"index": 0, "delta": {"content": piece}, "finish_reason": null}));
        let last = json!({"index": 0, "delta": {}, "finish_reason": "stop"});
        let event = |choice: Value| {
            let chunk = json!({"object": "chat.completion.chunk", "choices": [choice]});
            format!("data: {chunk}\n\n")
        };
        let events: String = deltas.chain([last]).map(event).collect();
        events + "data: [DONE]\n\n"
    }

    /// Its whole answer, in one.
    pub(crate) fn whole(self) -> Value {
        let message = json!({"role": "assistant", "content": self.pieces().concat()});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        json!({"object": "chat.completion", "choices": [choice]})
    }
}

/// The nonce that a chat's request has for its last message.
pub(crate) fn asked(body: &Value) -> Option<Nonce> {
    Nonce::parse(body["messages"].as_array()?.last()?["content"].as_str()?)
}
