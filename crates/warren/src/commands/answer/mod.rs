//! Asks models, and prints their answers as they stream.
//!
//! - [`question`]: what is asked: arguments, standard input and files
//! - [`chat_server`]: the server that answers, and the model
//! - [`printer`]: the answer on a terminal, as plain text or as JSON

pub(crate) mod chat_server;
pub(crate) mod printer;
pub(crate) mod question;

use std::time::Instant;

use anyhow::bail;
use client::{
    AnswerEvents, AnswerReader, Piece,
    room::{LlmMetrics, types::AnswerMetrics},
};
use tokio::time::timeout_at;

pub(crate) use self::{
    chat_server::{ChatServer, Parameters},
    printer::{Printer, Style},
    question::{Question, prompt},
};
use super::{note, table::plain, words::count};

/// A whole answer.
pub(crate) struct Answer {
    /// The participant that answered; empty if the server does not say.
    pub(crate) participant: String,
    /// Its tokens and times.
    pub(crate) metrics: LlmMetrics,
    /// The model, the tokens and the end, as far as the answer reports them.
    pub(crate) reader: AnswerReader,
}

/// Prints the answer to a request that was sent at `began`, to its end, and then its metrics; with `json` as
/// lines of JSON.
pub(super) async fn print(
    events: AnswerEvents,
    began: Instant,
    json: bool,
    style: Style,
) -> anyhow::Result<()> {
    let mut printer = if json { Printer::lines() } else { Printer::new(style) };
    let answer = follow(events, began, &mut printer).await?;
    if json {
        return printer.complete(&answer);
    }
    let by = match answer.participant.as_str() {
        "" => String::new(),
        participant => format!("{}: ", plain(participant)),
    };
    note(&format!("{by}{}", metrics(&as_answer(&answer.metrics))));
    Ok(())
}

/// Prints the answer to a request that was sent at `began`, to its end.
///
/// # Errors
/// When it did not come to its end, or cannot be printed.
pub(crate) async fn follow(
    mut events: AnswerEvents,
    began: Instant,
    printer: &mut Printer,
) -> anyhow::Result<Answer> {
    let mut reader = AnswerReader::default();
    loop {
        let next = match printer.due() {
            Some(due) => timeout_at(due.into(), events.next()).await.ok(),
            None => Some(events.next().await),
        };
        let Some(next) = next else {
            printer.paint()?;
            continue;
        };
        let pieces = match next? {
            Some(data) => reader.take(&data, began.elapsed()),
            None => vec![reader.end(began.elapsed()).unwrap_or_else(broke_off)],
        };
        for piece in pieces {
            match piece {
                Piece::Failed(words) => {
                    printer.finish()?;
                    bail!("{words}");
                }
                Piece::Thought(text) => printer.thought(&text)?,
                Piece::Text { participant, text } => printer.text(&participant, &text)?,
                Piece::Done { participant, metrics } => {
                    printer.finish()?;
                    return Ok(Answer { participant, metrics, reader });
                }
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

impl Answer {
    /// The usage of the answer, in a few words.
    pub(crate) fn usage(&self) -> String {
        let read = self.reader.tokens().0.map(|read| format!("{} read, ", count(read, "token")));
        format!("{}{}", read.unwrap_or_default(), metrics(&as_answer(&self.metrics)))
    }

    /// Whether the model stopped at its limit of tokens.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.reader.finish_reason() == Some("length")
    }
}

fn broke_off() -> Piece {
    Piece::Failed("the answer broke off".to_owned())
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
