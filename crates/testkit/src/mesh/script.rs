//! Answers to requests.

use serde_json::{Value, json};

/// A fake peer's only model, and its answer to every request, piece by piece.
#[derive(Debug, Clone)]
#[must_use]
pub struct Script {
    models: [String; 1],
    pieces: Vec<String>,
}

impl Script {
    /// The model of this name says this text, word by word.
    pub fn new(model: &str, text: &str) -> Self {
        let pieces = text.split_inclusive(' ').map(str::to_owned).collect();
        Self { models: [model.to_owned()], pieces }
    }

    pub(super) fn models(&self) -> &[String] {
        &self.models
    }

    /// The chunks of an answer.
    pub(super) fn chunks(&self) -> Vec<Value> {
        let chunk = |delta: Value, finish: Value| {
            json!({
                "choices": [{"delta": delta, "finish_reason": finish, "index": 0}],
                "created": 1_795_170_660, "id": "chatcmpl-mock", "model": self.models[0],
                "object": "chat.completion.chunk",
            })
        };
        let words = self.pieces.iter().map(|piece| chunk(json!({"content": piece}), Value::Null));
        words.chain([chunk(json!({}), json!("stop"))]).collect()
    }
}
