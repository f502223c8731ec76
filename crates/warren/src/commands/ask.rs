//! `warren ask`: one question to a model.

use std::{path::PathBuf, time::Instant};

use anyhow::bail;
use clap::Args;
use client::Warren;
use daemon::{ConfigFile, signals};
use serde_json::{Value, json};

use super::{
    answer::{
        Answer, ChatServer, Parameters, Printer, Question, Style,
        chat_server::{post, remember_model},
        follow,
    },
    note, run_client, say_json,
};
use crate::exit::usage;

/// Ask a model. The answer goes to standard output, and nothing else does
#[derive(Args)]
#[command(after_help = "\
Examples:
  warren ask \"What is a warren?\"
  warren ask --model qwen3:8b \"Name three colours\" > colours.txt
  git diff | warren ask \"Write a commit message\"
  warren ask --file photo.jpg \"What is in the picture?\"
  warren ask --json \"Why is the sky blue?\" | jq -r .answer")]
pub(crate) struct Ask {
    /// What to ask; - is standard input
    ///
    /// What is piped into the command comes after it.
    #[arg(value_name = "QUESTION")]
    words: Vec<String>,
    /// A picture or text of the question (repeatable)
    #[arg(long, short, value_name = "FILE")]
    file: Vec<PathBuf>,
    #[command(flatten)]
    parameters: Parameters,
    /// Print JSON
    ///
    /// One object at the end: the model, the answer and its usage.
    #[arg(long)]
    json: bool,
    /// Also say how many tokens it took, and how long, on standard error
    #[arg(long, short, hide_short_help = true)]
    verbose: bool,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    server: ChatServer,
}

impl Ask {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let question = Question::gather(&self.words, &self.file).map_err(usage)?;
        let warren = self.server.warren(file)?;
        run_client(async {
            let stop = signals::shutdown()?;
            let mut printer = if self.json { Printer::silent() } else { Printer::new(self.style) };
            let answered = tokio::select! {
                // Dropping the answer hangs up, and so cancels the request.
                () = stop.cancelled() => None,
                answered = self.ask(&warren, &question, &mut printer) => Some(answered?),
            };
            match answered {
                Some((model, answer)) => self.end(&model, &answer, &mut printer),
                None => {
                    printer.finish()?;
                    bail!("cancelled")
                }
            }
        })
    }

    async fn ask(
        &self,
        warren: &Warren,
        question: &Question,
        printer: &mut Printer,
    ) -> anyhow::Result<(String, Answer)> {
        let model = self.parameters.choose_model(warren).await?;
        let body = self.parameters.body(&model, &self.messages(question));
        let began = Instant::now();
        let answer = follow(post(warren, &body).await?, began, printer).await?;
        remember_model(&warren.url(), &model);
        Ok((model, answer))
    }

    fn messages(&self, question: &Question) -> Vec<Value> {
        let system = self.parameters.system.as_ref();
        let system = system.map(|text| json!({"role": "system", "content": text}));
        let message = json!({"role": "user", "content": question.content()});
        system.into_iter().chain([message]).collect()
    }

    fn end(&self, model: &str, answer: &Answer, printer: &mut Printer) -> anyhow::Result<()> {
        if self.json {
            say_json(&as_json(model, answer, &printer.take_text()))?;
        }
        if answer.is_cut_off() {
            note("the answer ends at its limit of tokens: --max-tokens sets it");
        }
        if self.verbose {
            note(&answer.usage());
        }
        Ok(())
    }
}

fn as_json(model: &str, answer: &Answer, text: &str) -> Value {
    let (read, written) = answer.reader.tokens();
    json!({
        "model": answer.reader.model().unwrap_or(model),
        "answer": text,
        "finish_reason": answer.reader.finish_reason(),
        "usage": {"prompt_tokens": read, "completion_tokens": written},
        "first_token_ms": answer.metrics.latency_first_token_ms,
        "duration_ms": answer.metrics.duration_ms,
    })
}
