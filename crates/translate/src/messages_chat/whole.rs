//! A message as one JSON object.

use protocol::{
    anthropic,
    failure::{BadAnswer, Failure},
    json,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

use super::{MessageUsage, Stops, call_id, message_id, request_id};
use crate::{
    Context,
    answer::Body,
    chat::{Outcome, Part, Writer},
    errors,
};

/// Keeps the blocks of a message, and writes the message when they are complete.
#[derive(Debug)]
pub(super) struct Whole {
    context: Context,
    stops: Stops,
    parts: Vec<(Part, String)>,
}

impl Whole {
    pub(super) fn new(context: &Context, stops: Stops) -> Self {
        Self { context: context.clone(), stops, parts: Vec::new() }
    }

    fn block<'a>(&self, (part, text): &'a (Part, String)) -> Block<'a> {
        match part {
            Part::Reasoning => Block::Thinking { thinking: text, signature: "" },
            Part::Text | Part::Refusal => Block::Text { text },
            Part::Call { id, name, number } => {
                let id = call_id(&self.context.id, id, *number);
                Block::ToolUse { id, name, input: Input::of(text) }
            }
        }
    }
}

impl Writer for Whole {
    fn body(&self) -> Body {
        Body::Json
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.parts.push((part.clone(), String::new()));
    }

    fn delta(&mut self, more: &str, _: &mut Vec<u8>) {
        if let Some((_, text)) = self.parts.last_mut() {
            text.push_str(more);
        }
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let (stop_reason, stop_sequence) = self.stops.reason(outcome);
        let content: Vec<Block<'_>> = self.parts.iter().map(|part| self.block(part)).collect();
        let message = Message {
            id: message_id(&self.context),
            kind: "message",
            role: "assistant",
            model: &self.context.model,
            content,
            stop_reason,
            stop_sequence,
            usage: MessageUsage::of(&outcome.usage),
        };
        out.extend_from_slice(json::write(&message).as_bytes());
        Ok(())
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        let (kind, message) = errors::for_messages(status, failure);
        let id = request_id(&self.context);
        out.extend_from_slice(anthropic::error_body(kind, &message, &id).as_bytes());
    }
}

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
    usage: MessageUsage,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Thinking { thinking: &'a str, signature: &'static str },
    Text { text: &'a str },
    ToolUse { id: String, name: &'a str, input: Input<'a> },
}

/// A call's arguments as raw JSON, if they are an object; otherwise an empty object.
struct Input<'a>(Option<&'a RawValue>);

impl<'a> Input<'a> {
    fn of(arguments: &'a str) -> Self {
        let is_object = arguments.trim_start().starts_with('{');
        Self(serde_json::from_str(arguments).ok().filter(|_| is_object))
    }
}

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(raw) => raw.serialize(serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }
}
