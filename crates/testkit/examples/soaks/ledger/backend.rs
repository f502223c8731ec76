//! A backend that speaks Chat Completions, Completions and Embeddings, and counts its tokens: one
//! for each chunk of a stream.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{fmt::Write, sync::Arc};

use serde_json::{Value, json};
use testkit::{Gate, MockBackend, Received, Reply};

/// The model of requests whose answer is read to its end.
pub(crate) const WHOLE: &str = "whole";

/// The model of requests whose client leaves: their stream goes on for ever, without a word.
pub(crate) const LEFT: &str = "left";

pub(crate) const WORD: &str = " w";

#[derive(Debug, Default)]
pub(crate) struct Tally {
    whole: Sums,
    left: Sums,
}

#[derive(Debug, Default)]
struct Sums {
    requests: AtomicU64,
    prompt: AtomicU64,
    completion: AtomicU64,
}

impl Sums {
    fn add(&self, prompt: u64, completion: u64) {
        self.requests.fetch_add(1, Relaxed);
        self.prompt.fetch_add(prompt, Relaxed);
        self.completion.fetch_add(completion, Relaxed);
    }
}

/// Lets the backend answer each request with as many tokens as its text asks for.
pub(crate) fn script(backend: &MockBackend, tally: &Arc<Tally>) {
    backend.answers_only(&["/v1/chat/completions", "/v1/completions", "/v1/embeddings"]);
    let tally = Arc::clone(tally);
    backend.answer_with(move |received| reply(received, &tally));
}

/// The tokens of a request of this number: of its prompt and of its answer.
fn tokens(number: u64) -> (u64, u64) {
    (number % 97 + 3, number % 23 + 1)
}

fn reply(received: &Received, tally: &Tally) -> Reply {
    let body = received.json();
    let text = body.to_string();
    let number = number_in(&text, "n=").unwrap_or_default();
    let (prompt, completion) = tokens(number);
    if body["model"] == LEFT {
        let words = number_in(&text, "words=").unwrap_or_default();
        tally.left.add(0, words);
        return Reply::stream(deltas(words), &Gate::opened()).stalled();
    }
    if received.target.starts_with("/v1/embeddings") {
        tally.whole.add(prompt, 0);
        return Reply::json(200, &embedding(prompt));
    }
    tally.whole.add(prompt, completion);
    let usage = usage(prompt, completion);
    let legacy = received.target.starts_with("/v1/completions");
    match body["stream"] == true {
        true => Reply::stream(stream(&body, completion, &usage, legacy), &Gate::opened()),
        false => Reply::json(200, &whole(completion, &usage, legacy)),
    }
}

fn number_in(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn usage(prompt: u64, completion: u64) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    })
}

fn embedding(prompt: u64) -> Value {
    json!({
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
        "model": WHOLE,
        "usage": {"prompt_tokens": prompt, "total_tokens": prompt},
    })
}

fn whole(completion: u64, usage: &Value, legacy: bool) -> Value {
    let text = WORD.repeat(usize::try_from(completion).unwrap_or_default());
    let choice = match legacy {
        true => json!({"index": 0, "text": text, "finish_reason": "stop"}),
        false => json!({
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }),
    };
    json!({"id": "c", "object": "x", "created": 0, "model": WHOLE, "choices": [choice], "usage": usage})
}

/// As backends do: the usage comes last, and only when it was asked for.
fn stream(body: &Value, completion: u64, usage: &Value, legacy: bool) -> Vec<String> {
    let mut events = match legacy {
        true => (0..completion).map(|_| event(&json!({"index": 0, "text": WORD}))).collect(),
        false => deltas(completion),
    };
    let mut last = json!({"index": 0, "delta": {}, "finish_reason": "stop"});
    if legacy {
        last = json!({"index": 0, "text": "", "finish_reason": "stop"});
    }
    events.push(event(&last));
    if body["stream_options"]["include_usage"] == true {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0,
            "model": WHOLE, "choices": [], "usage": usage});
        events.push(format!("data: {chunk}\n\n"));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn deltas(count: u64) -> Vec<String> {
    (0..count).map(|_| event(&json!({"index": 0, "delta": {"content": WORD}}))).collect()
}

fn event(choice: &Value) -> String {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": WHOLE,
        "choices": [choice]});
    format!("data: {chunk}\n\n")
}

impl Tally {
    /// What differs between the ledger and this.
    pub(crate) fn compare(&self, ledger: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut same = |what: &str, ledger: u64, backend: &AtomicU64| {
            let backend = backend.load(Relaxed);
            if ledger != backend {
                wrong.push(format!("{what}: {ledger} in the ledger, {backend} at the backend"));
            }
        };
        let whole = row(ledger, WHOLE);
        same("requests", count(whole, "requests"), &self.whole.requests);
        same("prompt tokens", count(whole, "prompt_tokens"), &self.whole.prompt);
        same("completion tokens", count(whole, "completion_tokens"), &self.whole.completion);
        same("estimated", count(whole, "estimated"), &AtomicU64::new(0));
        let left = row(ledger, LEFT);
        same("requests left", count(left, "requests"), &self.left.requests);
        same("completion tokens left", count(left, "completion_tokens"), &self.left.completion);
        same("estimated left", count(left, "estimated"), &self.left.requests);
        wrong
    }

    pub(crate) fn account(&self, seed: u64, requests: u64, ledger: &Value) -> String {
        let mut line = format!("seed {seed}: {requests} requests");
        for (name, sums) in [(WHOLE, &self.whole), (LEFT, &self.left)] {
            let row = row(ledger, name);
            let _ = write!(
                line,
                "; {name}: {} requests, {} prompt and {} completion tokens at the backend, \
                 {} requests ({} estimated), {} and {} in the ledger",
                sums.requests.load(Relaxed),
                sums.prompt.load(Relaxed),
                sums.completion.load(Relaxed),
                count(row, "requests"),
                count(row, "estimated"),
                count(row, "prompt_tokens"),
                count(row, "completion_tokens"),
            );
        }
        line
    }
}

fn row<'a>(ledger: &'a Value, model: &str) -> &'a Value {
    let rows = ledger["rows"].as_array().into_iter().flatten();
    rows.into_iter().find(|row| row["model"] == model).unwrap_or(&Value::Null)
}

fn count(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_default()
}
