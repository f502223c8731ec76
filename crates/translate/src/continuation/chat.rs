//! Chat Completions.

use base::Continuation;
use protocol::json::{self, JsonReader, fields};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    CannotContinue,
    body::{BodyEdits, Message, asks},
    chunks::{ChunkStitch, DONE, Head},
    record::{Record, Repetition},
    shape::{Object, Shape, Stitch},
};
use crate::chat::chunk::{Choice, Completion};

/// The notes about an answer of Chat Completions.
#[derive(Debug, Clone, Default)]
pub(super) struct Chat {
    head: Head,
}

impl Shape for Chat {
    fn read(&mut self, data: &[u8], json: &mut JsonReader, record: &mut Record) {
        if data.trim_ascii() == DONE {
            record.over = true;
            return;
        }
        self.head.read(data);
        let Ok(chunk) = json.chunk::<Completion<'_>>(data) else {
            return record.refuse(CannotContinue::NotUnderstood);
        };
        if chunk.error.is_some_and(|error| asks(Some(error))) || &*chunk.object == "error" {
            return record.refuse(CannotContinue::Failed);
        }
        if let Some(usage) = chunk.usage {
            record.reported_tokens = usage.completion();
        }
        for choice in &chunk.choices.0 {
            note(choice, record);
        }
    }

    fn limits(&self) -> &'static [&'static str] {
        &["max_tokens", "max_completion_tokens", "n_predict"]
    }

    fn append(
        &self,
        record: &Record,
        how: Continuation,
        edits: &mut BodyEdits<'_>,
    ) -> Result<(), CannotContinue> {
        edits.lower_minimum("min_tokens", record.tokens());
        let (list, messages) = edits.list("messages")?;
        let last = messages.last().map(|last| fields::value::<Message<'_>>(last, "messages"));
        let goes_on = how == Continuation::LastMessage || edits.asks("continue_final_message");
        let begun = last.transpose()?.filter(|last| goes_on && last.is_assistants());
        if record.text.is_empty() && how == Continuation::FinalMessage {
            return Err(CannotContinue::Thoughts);
        }
        match begun {
            // The request itself has the beginning of the answer.
            Some(_) if !record.thoughts.is_empty() => return Err(CannotContinue::Thoughts),
            Some(begun) => match begun.end()? {
                Some(end) => edits.append_text(end, &record.text),
                None => {
                    let text = json!({"type": "text", "text": record.text});
                    edits.append_items(begun.content()?, &text.to_string());
                }
            },
            None => edits.append_items(list, &beginning(record)),
        }
        if how == Continuation::FinalMessage {
            flag(edits);
        }
        Ok(())
    }
    fn close(&self, record: &Record, out: &mut Vec<u8>) {
        self.head.close(record, json!({"delta": {}}), out);
    }

    fn stitch(&self, record: &Record) -> Box<dyn Stitch> {
        Box::new(ChunkStitch::new(&self.head, record, choice))
    }
}

/// Whether the answer to this request may be continued.
pub(super) fn may_continue(body: &[u8]) -> Result<(), CannotContinue> {
    BodyEdits::of(body)?.refuse(&[
        ("response_format", is_plain_text),
        ("tool_choice", |choice| matches!(choice.get(), r#""auto""# | r#""none""#)),
    ])
}

/// A request that ends with the assistant's message, with the flag that tells a provider to continue that
/// message.
pub(super) fn flagged(body: &[u8]) -> Result<Vec<u8>, CannotContinue> {
    let mut edits = BodyEdits::of(body)?;
    flag(&mut edits);
    Ok(edits.made())
}

fn note(choice: &Choice<'_>, record: &mut Record) {
    if choice.index.0.unwrap_or(0) > 0 {
        record.refuse(CannotContinue::SeveralChoices);
    }
    if let Some(delta) = &choice.delta {
        record.add_thoughts(delta.thoughts());
        record.add_text(&delta.content.text);
        if !delta.refusal.is_empty() {
            record.refuse(CannotContinue::Refusal);
        }
        if !delta.tool_calls.0.is_empty() {
            record.refuse(CannotContinue::ToolCall);
        }
    }
    record.finished |= !choice.finish_reason.is_empty();
}

/// Removes from a choice what the client already has. Returns whether anything is left.
fn choice(choice: &mut Object, repetition: &mut Repetition) -> bool {
    let finishes = choice.get("finish_reason").is_some_and(Value::is_string);
    let Some(Value::Object(delta)) = choice.get_mut("delta") else { return finishes };
    delta.remove("role");
    if let Some(Value::String(content)) = delta.get_mut("content") {
        repetition.cut(content);
    }
    let says = |value: &Value| !value.is_null() && value != "" && *value != json!([]);
    finishes || delta.values().any(says)
}

/// The assistant's message that the provider has to continue.
#[derive(Serialize)]
struct Beginning<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning_content: &'a str,
}

fn flag(edits: &mut BodyEdits<'_>) {
    edits.set("continue_final_message", "true");
    edits.set("add_generation_prompt", "false");
    // An echo would repeat the beginning.
    if edits.asks("echo") {
        edits.set("echo", "false");
    }
}

fn beginning(record: &Record) -> String {
    let (content, reasoning_content) = (&*record.text, &*record.thoughts);
    json::write(&Beginning { role: "assistant", content, reasoning_content })
}

/// Whether a response format asks for plain text.
fn is_plain_text(format: &RawValue) -> bool {
    serde_json::from_str::<Value>(format.get()).is_ok_and(|format| format["type"] == "text")
}
