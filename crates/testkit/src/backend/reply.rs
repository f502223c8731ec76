//! A backend's deeds for one request, step by step.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Holds a reply back until the test lets it go on, one step for each time it is opened.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// A gate that lets nothing through yet.
    pub fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// A gate that lets everything through.
    pub fn opened() -> Self {
        Self(Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)))
    }

    /// Lets `steps` steps through, now or when they come.
    pub fn open(&self, steps: usize) {
        self.0.add_permits(steps);
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.expect("gates are never closed for good").forget();
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    Write(Bytes),
    Wait(Gate),
    /// Take time, as a model does. For load only: a test opens a gate.
    Think(Duration),
    Close,
    Reset,
    /// Do nothing more until the far end leaves.
    Hang,
}

#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Reply {
    pub(crate) steps: Vec<Step>,
}

impl Reply {
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect() }
    }

    /// Exactly these bytes, in one write.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::steps([Step::Write(bytes.into())])
    }

    pub fn full(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut message = head(status, headers);
        message.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        Self::raw([message.as_bytes(), body].concat())
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::full(status, &[("content-type", "application/json")], body.to_string())
    }

    /// The answer of llama.cpp for a path that it does not have.
    pub fn file_not_found() -> Self {
        let error = json!({"code": 404, "message": "File Not Found", "type": "not_found_error"});
        Self::json(404, &json!({"error": error}))
    }

    /// The answer of llama.cpp for every path while its model is being loaded.
    pub fn loading() -> Self {
        let error = json!({"code": 503, "message": "Loading model", "type": "unavailable_error"});
        Self::json(503, &json!({"error": error}))
    }

    /// A chat completion that says `text`, with a usage of 3 and 2 tokens.
    pub fn completion(text: &str) -> Self {
        let message = json!({"role": "assistant", "content": text});
        Self::json(
            200,
            &json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "mock",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            }),
        )
    }

    /// A `text/event-stream` whose chunks each wait for the gate, as does its end.
    pub fn stream<C: AsRef<[u8]>>(chunks: impl IntoIterator<Item = C>, gate: &Gate) -> Self {
        Self::stream_with(200, &[("content-type", "text/event-stream")], chunks, gate)
    }

    /// The same with a status and headers of its own.
    pub fn stream_with<C: AsRef<[u8]>>(
        status: u16,
        headers: &[(&str, &str)],
        chunks: impl IntoIterator<Item = C>,
        gate: &Gate,
    ) -> Self {
        let head = head(status, headers) + "transfer-encoding: chunked\r\n\r\n";
        let mut steps = vec![Step::Write(head.into())];
        for chunk in chunks {
            steps.push(Step::Wait(gate.clone()));
            steps.push(Step::Write(http_chunk(chunk.as_ref())));
        }
        steps.push(Step::Wait(gate.clone()));
        steps.push(Step::Write(Bytes::from_static(b"0\r\n\r\n")));
        Self { steps }
    }

    /// Nothing at all, not even a head.
    pub fn hang() -> Self {
        Self::steps([Step::Hang])
    }

    /// The same reply, thinking for `each` wherever it would wait for a gate.
    pub fn thinking(mut self, each: Duration) -> Self {
        for step in &mut self.steps {
            if matches!(step, Step::Wait(_)) {
                *step = Step::Think(each);
            }
        }
        self
    }

    /// The same reply, its first byte held back by a gate.
    pub fn after(mut self, gate: &Gate) -> Self {
        self.steps.insert(0, Step::Wait(gate.clone()));
        self
    }

    /// The same reply, reset where its last step would be.
    pub fn broken(mut self) -> Self {
        self.steps.pop();
        self.steps.push(Step::Reset);
        self
    }

    /// The same reply, and nothing more where its last step would be.
    pub fn stalled(mut self) -> Self {
        self.steps.pop();
        self.steps.push(Step::Hang);
        self
    }
}

fn http_chunk(bytes: &[u8]) -> Bytes {
    let size = format!("{:x}\r\n", bytes.len());
    [size.as_bytes(), bytes, b"\r\n"].concat().into()
}

fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Mock\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}
