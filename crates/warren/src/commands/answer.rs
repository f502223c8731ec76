//! Prints a model's answer as it streams.

use std::{
    io::{IsTerminal, Read, Write, stdin, stdout},
    time::Instant,
};

use anyhow::{Context, bail};
use client::{
    Answering, Piece, Reading,
    room::{LlmMetrics, types::AnswerMetrics},
};
use serde_json::{Value, json};

use super::{note, say, say_json_line, table::plain, words::count};

/// The longest question, in bytes.
const LONGEST: u64 = 16 << 20;

/// The question; `-` reads it from standard input.
pub(super) fn prompt(said: &str) -> anyhow::Result<String> {
    if said != "-" {
        return Ok(said.to_owned());
    }
    let mut prompt = String::new();
    let read = stdin().lock().take(LONGEST).read_to_string(&mut prompt);
    read.context("standard input cannot be read")?;
    if prompt.trim().is_empty() {
        bail!("nothing came from standard input: write a question");
    }
    Ok(prompt)
}

/// Prints the answer to a request that was sent at `began`, to its end; with `json` as lines of JSON.
pub(super) async fn print(
    mut answering: Answering,
    began: Instant,
    json: bool,
) -> anyhow::Result<()> {
    let (mut reading, mut printer) = (Reading::default(), Printer::new(json));
    loop {
        let piece = match answering.next().await? {
            Some(data) => reading.take(&data, began.elapsed()),
            None => Some(reading.end().unwrap_or_else(broke_off)),
        };
        match piece {
            None => {}
            Some(Piece::Failed(words)) => {
                printer.end_line()?;
                bail!("{words}");
            }
            Some(Piece::Text { participant, text }) => printer.text(&participant, &text)?,
            Some(Piece::Done { participant, metrics }) => {
                return printer.done(&participant, &metrics);
            }
        }
    }
}

/// An answer's metrics in a few words.
pub(super) fn metrics(metrics: &AnswerMetrics) -> String {
    let mut parts = Vec::new();
    if let Some(tokens) = metrics.output_tokens {
        parts.push(count(tokens, "token"));
    }
    parts.push(format!("{:.1} s", metrics.duration_ms as f64 / 1000.0));
    if let Some(rate) = metrics.tokens_per_second {
        parts.push(format!("{rate:.1} tokens/s"));
    }
    parts.push(format!("the first after {:.1} s", metrics.ttft_ms as f64 / 1000.0));
    parts.join(", ")
}

fn broke_off() -> Piece {
    Piece::Failed("the answer broke off".to_owned())
}

/// Prints an answer as it comes.
struct Printer {
    json: bool,
    /// Whether standard output is a terminal, which control characters must not reach.
    terminal: bool,
    /// Whether the last line is still open.
    open: bool,
}

impl Printer {
    fn new(json: bool) -> Self {
        Self { json, terminal: stdout().is_terminal(), open: false }
    }

    fn text(&mut self, participant: &str, text: &str) -> anyhow::Result<()> {
        if self.json {
            return self
                .line(&json!({"type": "token", "participantId": participant, "token": text}));
        }
        let text = if self.terminal { base::plain::lines(text) } else { text.to_owned() };
        let mut out = stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        self.open = !text.ends_with('\n');
        Ok(())
    }

    fn done(&mut self, participant: &str, done: &LlmMetrics) -> anyhow::Result<()> {
        if self.json {
            let done = json!({"type": "complete", "participantId": participant, "metrics": done});
            return self.line(&done);
        }
        self.end_line()?;
        let by = if participant.is_empty() {
            String::new()
        } else {
            format!("{}: ", plain(participant))
        };
        note(&format!("{by}{}", metrics(&as_answer(done))));
        Ok(())
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.open) { Ok(say("")?) } else { Ok(()) }
    }

    fn line(&self, value: &Value) -> anyhow::Result<()> {
        Ok(say_json_line(value)?)
    }
}

fn as_answer(done: &LlmMetrics) -> AnswerMetrics {
    AnswerMetrics {
        ttft_ms: done.latency_first_token_ms,
        duration_ms: done.duration_ms,
        output_tokens: Some(done.tokens),
        tokens_per_second: Some(done.tokens_per_second),
        ..AnswerMetrics::default()
    }
}
