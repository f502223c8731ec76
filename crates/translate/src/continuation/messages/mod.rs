//! Messages.
//!
//! - `stitch`: the next provider's events as the rest of the first one's

mod stitch;

use base::Continuation;
use protocol::json::{
    JsonReader, fields,
    lenient::{Count, Text, or_default},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    CannotContinue,
    body::{BodyEdits, Message},
    record::Record,
    shape::{Shape, Stitch, write_event},
};

/// The notes about an answer of Messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages {
    /// Whether the message has begun.
    begun: bool,
    blocks: Vec<Block>,
}

/// A block of content.
#[derive(Debug, Clone)]
struct Block {
    index: u64,
    kind: Kind,
    is_open: bool,
    /// Its text, or its thoughts.
    text: String,
    signature: String,
}

/// The kind of a block. Blocks of other kinds belong to tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "thinking" => Some(Self::Thinking),
            _ => None,
        }
    }

    /// The type of its deltas, and their field for the text.
    fn delta(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text_delta", "text"),
            Self::Thinking => ("thinking_delta", "thinking"),
        }
    }
}

/// The fields of an event that are needed.
#[derive(Debug, Default, Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(default)]
    index: Count,
    #[serde(borrow, default, deserialize_with = "or_default")]
    content_block: Piece<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    delta: Piece<'a>,
    #[serde(default, deserialize_with = "or_default")]
    usage: Counts,
}

#[derive(Debug, Default, Deserialize)]
struct Piece<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Counts {
    #[serde(default)]
    output_tokens: Count,
}

impl Shape for Messages {
    fn read(&mut self, data: &[u8], json: &mut JsonReader, record: &mut Record) {
        if data == b"[DONE]" {
            return;
        }
        match json.chunk::<Event<'_>>(data) {
            Ok(event) => self.event(&event, record),
            Err(_) => record.refuse(CannotContinue::NotUnderstood),
        }
    }

    fn limits(&self) -> &'static [&'static str] {
        &["max_tokens"]
    }

    fn append(
        &self,
        record: &Record,
        _: Continuation,
        edits: &mut BodyEdits<'_>,
    ) -> Result<(), CannotContinue> {
        let (list, messages) = edits.list("messages")?;
        let last = messages.last().map(|last| fields::value::<Message<'_>>(last, "messages"));
        let last = last.transpose()?.filter(Message::is_assistants);
        match last {
            // The request itself has the beginning of the answer.
            Some(begun) if self.blocks.iter().all(|block| block.kind == Kind::Text) => {
                edits.append_text(begun.end()?.ok_or(CannotContinue::ToolCall)?, &record.text);
                Ok(())
            }
            Some(_) => Err(CannotContinue::Thoughts),
            None => {
                let content = self.content();
                let message = json!({"role": "assistant", "content": content});
                edits.append_items(list, &message.to_string());
                Ok(())
            }
        }
    }
    fn close(&self, record: &Record, out: &mut Vec<u8>) {
        for block in self.blocks.iter().filter(|block| block.is_open) {
            write_event(&json!({"type": "content_block_stop", "index": block.index}), out);
        }
        if !record.finished {
            write_event(
                &json!({"type": "message_delta",
                    "delta": {"stop_reason": "max_tokens", "stop_sequence": null},
                    "usage": {"output_tokens": record.tokens()}}),
                out,
            );
        }
        write_event(&json!({"type": "message_stop"}), out);
    }

    fn stitch(&self, record: &Record) -> Box<dyn Stitch> {
        Box::new(stitch::MessageStitch::new(self, record))
    }
}

impl Messages {
    fn event(&mut self, event: &Event<'_>, record: &mut Record) {
        match &*event.kind {
            "message_start" => self.begun = true,
            "content_block_start" => self.open(event, record),
            "content_block_delta" => self.delta(event, record),
            "content_block_stop" => {
                if let Some(block) = self.block(event) {
                    block.is_open = false;
                }
            }
            "message_delta" => {
                record.finished |= !event.delta.stop_reason.is_empty();
                record.reported_tokens = event.usage.output_tokens.0.unwrap_or(0);
            }
            "message_stop" => record.over = true,
            "error" => record.refuse(CannotContinue::Failed),
            _ => {}
        }
    }

    fn open(&mut self, event: &Event<'_>, record: &mut Record) {
        let Some(kind) = Kind::of(&event.content_block.kind) else {
            return record.refuse(CannotContinue::ToolCall);
        };
        let index = event.index.0.unwrap_or(self.blocks.len() as u64);
        let (text, signature) = (String::new(), String::new());
        self.blocks.push(Block { index, kind, is_open: true, text, signature });
        self.piece(event, &event.content_block, record);
    }

    fn delta(&mut self, event: &Event<'_>, record: &mut Record) {
        if &*event.delta.kind == "citations_delta" {
            record.refuse(CannotContinue::Citations);
        }
        self.piece(event, &event.delta, record);
    }

    fn piece(&mut self, event: &Event<'_>, piece: &Piece<'_>, record: &mut Record) {
        record.add_text(&piece.text);
        record.add_thoughts(&piece.thinking);
        if let Some(block) = self.block(event) {
            block.text.push_str(&piece.text);
            block.text.push_str(&piece.thinking);
            block.signature.push_str(&piece.signature);
        }
    }

    /// The open block of an event.
    fn block(&mut self, event: &Event<'_>) -> Option<&mut Block> {
        let last = self.blocks.last_mut().filter(|block| block.is_open)?;
        event.index.0.is_none_or(|index| index == last.index).then_some(last)
    }

    /// The blocks in the form of a request.
    fn content(&self) -> Vec<Value> {
        let said = self.blocks.iter().filter(|block| !block.text.is_empty());
        said.map(|Block { kind, text, signature, .. }| match kind {
            Kind::Text => json!({"type": "text", "text": text}),
            Kind::Thinking => {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
        })
        .collect()
    }
}

/// Whether the answer to this request may be continued.
pub(super) fn may_continue(body: &[u8]) -> Result<(), CannotContinue> {
    BodyEdits::of(body)?.refuse(&[
        ("tool_choice", asks_no_tool),
        ("output_format", |_| false),
        ("output_config", |config| !names(config, "format")),
    ])
}

fn asks_no_tool(choice: &RawValue) -> bool {
    let choice = serde_json::from_str::<Value>(choice.get()).unwrap_or_default();
    matches!(choice["type"].as_str(), Some("auto" | "none"))
}

/// Whether an object has this field with a value other than `null`.
fn names(object: &RawValue, name: &str) -> bool {
    let object = serde_json::from_str::<Value>(object.get()).unwrap_or_default();
    object.get(name).is_some_and(|value| !value.is_null())
}
