//! A backend that speaks Chat Completions, Completions and Embeddings, and counts its tokens: one
//! for each chunk of a stream.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{fmt::Write, sync::Arc};

use serde_json::Value;
use testkit::{Gate, MockBackend, Received, Reply};

use crate::tokens::{PATHS, Tokens, answer, deltas, number_in};

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
    backend.answers_only(&PATHS);
    let tally = Arc::clone(tally);
    backend.answer_with(move |received| reply(received, &tally));
}

fn reply(received: &Received, tally: &Tally) -> Reply {
    let body = received.json();
    let text = body.to_string();
    let tokens = Tokens::of(number_in(&text, "n=").unwrap_or_default());
    if body["model"] == LEFT {
        let words = number_in(&text, "words=").unwrap_or_default();
        tally.left.add(0, words);
        return Reply::stream(deltas(&body["model"], words, WORD), &Gate::opened()).stalled();
    }
    let is_embedding = received.target.starts_with("/v1/embeddings");
    tally.whole.add(tokens.prompt, if is_embedding { 0 } else { tokens.completion });
    answer(received, &body, tokens, WORD)
}

impl Tally {
    /// The differences between the ledger and this.
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
