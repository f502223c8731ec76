//! Answers to requests.

use serde_json::{Value, json};

use crate::backend::Gate;

/// A fake peer's answer to every request, piece by piece.
#[derive(Debug, Clone)]
#[must_use]
pub struct Script {
    pieces: Vec<String>,
    gate: Option<Gate>,
    failure: Option<(String, String)>,
    refuses: bool,
    dies: bool,
}

impl Script {
    pub fn text(text: &str) -> Self {
        let pieces = text.split_inclusive(' ').map(str::to_owned).collect();
        Self { pieces, gate: None, failure: None, refuses: false, dies: false }
    }

    /// Waits at the gate before each word after the first, and before the end.
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Ends with this code and message instead of being complete. An empty code is left out.
    pub fn fail(mut self, code: &str, message: &str) -> Self {
        self.failure = Some((code.to_owned(), message.to_owned()));
        self
    }

    /// Fails before the first word.
    pub fn at_once(mut self) -> Self {
        self.refuses = true;
        self
    }

    /// Its backend dies after the last word. Stock nodes then say that the answer is complete.
    pub fn die(mut self) -> Self {
        self.dies = true;
        self
    }

    /// The chunks of an answer to this request, as `model` writes them.
    pub(super) fn chunks(&self, model: &str) -> Vec<Value> {
        if self.refuses {
            return Vec::new();
        }
        let chunk = |delta: Value, finish: Value| {
            json!({
                "choices": [{"delta": delta, "finish_reason": finish, "index": 0}],
                "created": 1_795_170_660, "id": "chatcmpl-mock", "model": model,
                "object": "chat.completion.chunk",
            })
        };
        let words = self.pieces.iter().map(|piece| chunk(json!({"content": piece}), Value::Null));
        let ends = self.failure.is_none() && !self.dies;
        let last = ends.then(|| chunk(json!({}), json!("stop")));
        words.chain(last).collect()
    }

    /// Waits until the next word may be said.
    pub(super) async fn pass(&self) {
        if let Some(gate) = &self.gate {
            gate.pass().await;
        }
    }

    /// Kind and body of the message that ends an answer of `chunks` chunks.
    pub(super) fn end(&self, request: &Value, chunks: usize) -> (&'static str, Value) {
        let Some((code, message)) = &self.failure else {
            return ("inferenceComplete", json!({"requestID": request, "tokensOut": chunks}));
        };
        let mut error = json!({"requestID": request, "errorMessage": message});
        if !code.is_empty() {
            error["code"] = json!(code);
        }
        ("inferenceError", error)
    }
}
