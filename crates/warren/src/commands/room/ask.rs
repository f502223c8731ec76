//! `warren room ask`.

use std::{
    io::{IsTerminal, Read, Write, stdin, stdout},
    time::Instant,
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use client::{
    Answering, ClientError, Piece, Reading, RoomClient,
    room::{LlmMetrics, message::LlmRequest, types::AnswerMetrics},
};
use daemon::{ConfigFile, signals};
use serde_json::{Value, json};

use super::{Password, clean, hosts::Hosts, narrator::metrics, note, place::Place};
use crate::{
    commands::{say, table::plain},
    exit::usage,
};

/// The longest question, in bytes.
const LONGEST: u64 = 16 << 20;

/// Ask a model in a room. Everybody who watches the room sees the question's answer, token by token,
/// unless you say --private
#[derive(Args)]
pub(super) struct Ask {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    place: Place,
    /// What to ask; - is standard input
    prompt: String,
    /// Whom: * is anybody, model:NAME anybody who has the model, or a participant's id
    #[arg(long, value_name = "SELECTOR", default_value = "*")]
    model: String,
    /// Only for you: nobody else in the room is told the answer. (Whoever lends the model reads the
    /// question in any case.)
    #[arg(long)]
    private: bool,
    /// Print each token, and the metrics at the end, as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    password: Password,
    #[command(flatten)]
    hosts: Hosts,
}

impl Ask {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let prompt = self.prompt().map_err(usage)?;
        let found = self.hosts.find(file, &self.place).await?;
        let room = found.room(self.password.get())?;
        let stop = signals::shutdown()?;
        tokio::select! {
            // Dropping the answer hangs up, and so cancels the request.
            () = stop.cancelled() => bail!("cancelled"),
            answered = self.ask(&room, &prompt) => answered,
        }
    }

    fn prompt(&self) -> anyhow::Result<String> {
        if self.prompt != "-" {
            return Ok(self.prompt.clone());
        }
        let mut prompt = String::new();
        let read = stdin().lock().take(LONGEST).read_to_string(&mut prompt);
        read.context("standard input cannot be read")?;
        if prompt.trim().is_empty() {
            bail!("nothing came from standard input: write a question");
        }
        Ok(prompt)
    }

    async fn ask(&self, room: &RoomClient, prompt: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut answering = self.begin(room, prompt).await?;
        let (mut reading, mut printer) = (Reading::default(), Printer::new(self.json));
        loop {
            let piece = match answering.next().await? {
                Some(data) => reading.take(&data, began.elapsed()),
                None => Some(reading.end().unwrap_or_else(broke_off)),
            };
            match piece {
                None => {}
                Some(Piece::Failed(words)) => {
                    printer.end_line()?;
                    bail!("{}", clean(&words));
                }
                Some(Piece::Text { participant, text }) => printer.text(&participant, &text)?,
                Some(Piece::Done { participant, metrics }) => {
                    return printer.done(&participant, &metrics);
                }
            }
        }
    }

    async fn begin(&self, room: &RoomClient, prompt: &str) -> anyhow::Result<Answering> {
        if self.private {
            return Ok(room.ask_privately(&self.model, prompt).await?);
        }
        let request = LlmRequest {
            request_id: format!("cli-{:032x}", rand::random::<u128>()),
            target_id: self.model.clone(),
            prompt: prompt.to_owned(),
            options: None,
            room_code: None,
        };
        match room.ask(&request).await {
            Err(ClientError::NotFound { words }) if words.contains("Route not found") => Err(
                anyhow!("this server has no answers that a whole room sees: ask with --private"),
            ),
            answering => Ok(answering?),
        }
    }
}

fn broke_off() -> Piece {
    Piece::Failed("the answer broke off".to_owned())
}

/// Prints an answer as it comes.
struct Printer {
    json: bool,
    /// Whether a person reads it on a terminal, which must not be made do things.
    terminal: bool,
    /// Whether the last line has no end yet.
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
        let text = if self.terminal { clean(text) } else { text.to_owned() };
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
        Ok(say(&value.to_string())?)
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
