//! Completions.

use base::Continuation;
use protocol::json::{
    self, JsonReader,
    fields::{self, TextOrList},
    lenient::{Count, List, Text},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    CannotContinue,
    body::{BodyEdits, asks},
    chunks::{ChunkStitch, DONE, Head},
    record::{Record, Repetition},
    shape::{Object, Shape, Stitch},
};
use crate::chat::Usage;

/// The notes about an answer of Completions.
#[derive(Debug, Clone, Default)]
pub(super) struct Completions {
    head: Head,
}

impl Shape for Completions {
    fn read(&mut self, data: &[u8], json: &mut JsonReader, record: &mut Record) {
        if data.trim_ascii() == DONE {
            record.over = true;
            return;
        }
        self.head.read(data);
        let Ok(chunk) = json.chunk::<Chunk<'_>>(data) else {
            return record.refuse(CannotContinue::NotUnderstood);
        };
        if asks(chunk.error) || &*chunk.object == "error" {
            return record.refuse(CannotContinue::Failed);
        }
        if let Some(usage) = chunk.usage {
            record.reported_tokens = usage.completion();
        }
        for choice in &chunk.choices.0 {
            if choice.index.0.unwrap_or(0) > 0 {
                record.refuse(CannotContinue::SeveralChoices);
            }
            record.add_text(&choice.text);
            record.finished |= !choice.finish_reason.is_empty();
        }
    }

    fn limits(&self) -> &'static [&'static str] {
        &["max_tokens", "n_predict"]
    }

    fn append(
        &self,
        record: &Record,
        _: Continuation,
        edits: &mut BodyEdits<'_>,
    ) -> Result<(), CannotContinue> {
        edits.lower_minimum("min_tokens", record.tokens());
        append(&record.text, edits)
    }
    fn close(&self, record: &Record, out: &mut Vec<u8>) {
        self.head.close(record, json!({"text": "", "logprobs": null}), out);
    }

    fn stitch(&self, record: &Record) -> Box<dyn Stitch> {
        Box::new(ChunkStitch::new(&self.head, record, choice))
    }
}

/// Whether the answer to this request may be continued.
pub(super) fn may_continue(body: &[u8]) -> Result<(), CannotContinue> {
    let edits = BodyEdits::of(body)?;
    edits.refuse(&[("response_format", |_| false)])?;
    prompt(&edits).map(drop)
}

/// The prompt: a text, or a list with one text. Answers to other prompts are not continued.
fn prompt<'a>(edits: &BodyEdits<'a>) -> Result<&'a RawValue, CannotContinue> {
    let other = CannotContinue::Asked("prompt");
    let prompt = edits.field("prompt").ok_or_else(|| other.clone())?;
    match TextOrList::read(prompt, "prompt") {
        Ok(TextOrList::Text(_)) => Ok(prompt),
        Ok(TextOrList::List(prompts)) => match prompts.as_slice() {
            [only] if only.get().starts_with('"') => Ok(only),
            _ => Err(other),
        },
        Err(_) => Err(other),
    }
}

fn append(text: &str, edits: &mut BodyEdits<'_>) -> Result<(), CannotContinue> {
    let prompt = prompt(edits)?;
    if !edits.asks("echo") {
        edits.append_text(prompt, text);
        return Ok(());
    }
    // With `echo`, the delivered text begins with the prompt.
    let said: fields::Text<'_> = fields::value(prompt, "prompt")?;
    if !text.starts_with(&*said.0) {
        return Err(CannotContinue::Asked("echo"));
    }
    edits.replace(prompt, json::write(&text));
    edits.set("echo", "false");
    Ok(())
}

/// Removes from a choice what the client already has. Returns whether anything is left.
fn choice(choice: &mut Object, repetition: &mut Repetition) -> bool {
    let finishes = choice.get("finish_reason").is_some_and(Value::is_string);
    let Some(Value::String(text)) = choice.get_mut("text") else { return finishes };
    repetition.cut(text);
    finishes || !text.is_empty()
}

/// A chunk, read as leniently as one of Chat Completions.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: List<TextChoice<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct TextChoice<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}
