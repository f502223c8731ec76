//! Messages.
//!
//! - `stitch`: the next provider's events as the rest of the first one's

mod stitch;

use base::Continuation;
use protocol::json::{
    self, JsonReader,
    fields::{self, TextOrList},
    lenient::{Count, Text, or_default},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    CannotContinue,
    body::{BodyEdits, part_text},
    record::Record,
    shape::{Object, Shape, Stitch},
};

/// What was delivered of an answer of Messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages {
    /// Whether the message has begun.
    begun: bool,
    blocks: Vec<Block>,
    record: Record,
    json: JsonReader,
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

/// What a block is. Blocks of other kinds belong to tools.
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

    /// The type of its deltas, and the field that they have their text in.
    fn delta(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text_delta", "text"),
            Self::Thinking => ("thinking_delta", "thinking"),
        }
    }
}

/// The data of an event, as far as it matters.
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
    fn read(&mut self, data: &[u8]) {
        if data == b"[DONE]" {
            return;
        }
        let mut json = std::mem::take(&mut self.json);
        match json.chunk::<Event<'_>>(data) {
            Ok(event) => self.event(&event),
            Err(_) => self.record.refuse(CannotContinue::NotUnderstood),
        }
        self.json = json;
    }

    fn record(&self) -> &Record {
        &self.record
    }

    fn record_mut(&mut self) -> &mut Record {
        &mut self.record
    }

    fn request(&self, body: &[u8], _: Continuation) -> Result<Vec<u8>, CannotContinue> {
        let mut edits = BodyEdits::of(body)?;
        edits.lower_limits(&["max_tokens"], self.record.tokens())?;
        self.append(&mut edits)?;
        Ok(edits.made())
    }

    fn close(&self, out: &mut Vec<u8>) {
        for block in self.blocks.iter().filter(|block| block.is_open) {
            write(&json!({"type": "content_block_stop", "index": block.index}), out);
        }
        if !self.record.finished {
            write(
                &json!({"type": "message_delta",
                    "delta": {"stop_reason": "max_tokens", "stop_sequence": null},
                    "usage": {"output_tokens": self.record.tokens()}}),
                out,
            );
        }
        write(&json!({"type": "message_stop"}), out);
    }

    fn stitch(&self) -> Box<dyn Stitch> {
        Box::new(stitch::MessageStitch::new(self))
    }
}

impl Messages {
    fn event(&mut self, event: &Event<'_>) {
        match &*event.kind {
            "message_start" => self.begun = true,
            "content_block_start" => self.open(event),
            "content_block_delta" => self.delta(event),
            "content_block_stop" => {
                if let Some(block) = self.block(event) {
                    block.is_open = false;
                }
            }
            "message_delta" => {
                self.record.finished |= !event.delta.stop_reason.is_empty();
                self.record.told_tokens = event.usage.output_tokens.0.unwrap_or(0);
            }
            "message_stop" => self.record.over = true,
            "error" => self.record.refuse(CannotContinue::Failed),
            _ => {}
        }
    }

    fn open(&mut self, event: &Event<'_>) {
        let Some(kind) = Kind::of(&event.content_block.kind) else {
            return self.record.refuse(CannotContinue::ToolCall);
        };
        let index = event.index.0.unwrap_or(self.blocks.len() as u64);
        let (text, signature) = (String::new(), String::new());
        self.blocks.push(Block { index, kind, is_open: true, text, signature });
        self.piece(event, &event.content_block);
    }

    fn delta(&mut self, event: &Event<'_>) {
        if &*event.delta.kind == "citations_delta" {
            self.record.refuse(CannotContinue::ToolCall);
        }
        self.piece(event, &event.delta);
    }

    fn piece(&mut self, event: &Event<'_>, piece: &Piece<'_>) {
        self.record.add_text(&piece.text);
        self.record.add_thoughts(&piece.thinking);
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

    /// The blocks as a request has them.
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

    /// Puts what was delivered to the end of the messages.
    fn append(&self, edits: &mut BodyEdits<'_>) -> Result<(), CannotContinue> {
        let (list, messages) = edits.list("messages")?;
        let last = messages.last().map(|last| fields::value::<Message<'_>>(last, "messages"));
        let last = last.transpose()?.filter(Message::is_assistants);
        match last {
            // The client began the answer itself.
            Some(begun) if self.blocks.iter().all(|block| block.kind == Kind::Text) => {
                begun.append(&self.record.text, edits)
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
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<fields::Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Message<'_> {
    fn is_assistants(&self) -> bool {
        self.role.as_ref().is_some_and(|role| role.0 == "assistant")
    }

    /// Appends to its content: to the text, or to the last block.
    fn append(&self, text: &str, edits: &mut BodyEdits<'_>) -> Result<(), CannotContinue> {
        let content = self.content.ok_or_else(super::body::unreadable)?;
        match TextOrList::read(content, "messages")? {
            TextOrList::Text(_) => edits.append_text(content, text),
            TextOrList::List(blocks) => {
                let last = blocks.last().and_then(|block| part_text(block));
                edits.append_text(last.ok_or(CannotContinue::ToolCall)?, text);
            }
        }
        Ok(())
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

/// Whether an object has this field, with something in it.
fn names(object: &RawValue, name: &str) -> bool {
    let object = serde_json::from_str::<Value>(object.get()).unwrap_or_default();
    object.get(name).is_some_and(|value| !value.is_null())
}

/// Writes an event under the name that is in its data.
fn write(event: &Value, out: &mut Vec<u8>) {
    let name = event["type"].as_str().unwrap_or_default();
    out.extend_from_slice(format!("event: {name}\ndata: {}\n\n", json::write(event)).as_bytes());
}

/// As [`write()`].
fn write_object(event: Object, out: &mut Vec<u8>) {
    write(&Value::Object(event), out);
}
