//! The events of a stream.

use protocol::{
    anthropic,
    failure::{BadAnswer, Failure},
    json,
};

use super::{MessageUsage, Stops, call_id, message_id, request_id};
use crate::{
    Context,
    answer::Body,
    chat::{Outcome, Part, Usage, Writer},
    errors,
};

/// Writes events, each block within its start and stop.
#[derive(Debug)]
pub(super) struct Stream {
    context: Context,
    stops: Stops,
    /// The number of the open block, or else of the next one.
    index: usize,
    /// The beginning of a delta of the open block, up to its text.
    prefix: String,
    /// Whether the open block is one of thoughts.
    thinking: bool,
    /// A buffer for a text with its escapes, used again for each delta.
    escaped: String,
}

impl Stream {
    pub(super) fn new(context: &Context, stops: Stops) -> Self {
        Self {
            context: context.clone(),
            stops,
            index: 0,
            prefix: String::new(),
            thinking: false,
            escaped: String::new(),
        }
    }

    /// A block's start, and the type and the field of its deltas.
    fn start(&self, part: &Part) -> (String, &'static str, &'static str) {
        match part {
            Part::Reasoning => (
                r#"{"type":"thinking","thinking":"","signature":""}"#.to_owned(),
                "thinking_delta",
                "thinking",
            ),
            Part::Text | Part::Refusal => {
                (r#"{"type":"text","text":""}"#.to_owned(), "text_delta", "text")
            }
            Part::Call { id, name, number } => {
                let id = json::write(&call_id(&self.context.id, id, *number));
                let name = json::write(name);
                let block =
                    format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}"#);
                (block, "input_json_delta", "partial_json")
            }
        }
    }
}

impl Writer for Stream {
    fn body(&self) -> Body {
        Body::Events
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        let id = json::write(&message_id(&self.context));
        let model = json::write(&self.context.model);
        let usage = json::write(&MessageUsage::of(&Usage::default()));
        let message = format!(
            r#"{{"id":{id},"type":"message","role":"assistant","model":{model},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{usage}}}"#
        );
        event(out, "message_start", &format!(r#""message":{message}"#));
    }

    fn open(&mut self, part: &Part, out: &mut Vec<u8>) {
        let index = self.index;
        let (block, kind, field) = self.start(part);
        event(out, "content_block_start", &format!(r#""index":{index},"content_block":{block}"#));
        self.thinking = *part == Part::Reasoning;
        self.prefix = format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\
             \"delta\":{{\"type\":\"{kind}\",\"{field}\":\""
        );
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        self.escaped.clear();
        json::push_escaped(&mut self.escaped, text);
        out.extend_from_slice(self.prefix.as_bytes());
        out.extend_from_slice(self.escaped.as_bytes());
        out.extend_from_slice(b"\"}}\n\n");
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let index = self.index;
        if self.thinking {
            let delta = r#"{"type":"signature_delta","signature":""}"#;
            event(out, "content_block_delta", &format!(r#""index":{index},"delta":{delta}"#));
        }
        event(out, "content_block_stop", &format!(r#""index":{index}"#));
        self.index += 1;
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let (reason, sequence) = self.stops.reason(outcome);
        let sequence = json::write(&sequence);
        let usage = json::write(&MessageUsage::of(&outcome.usage));
        let delta = format!(r#"{{"stop_reason":"{reason}","stop_sequence":{sequence}}}"#);
        event(out, "message_delta", &format!(r#""delta":{delta},"usage":{usage}"#));
        out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        let (kind, message) = errors::for_messages(failure.status(), failure);
        let id = request_id(&self.context);
        out.extend_from_slice(anthropic::error_event(kind, &message, &id).as_bytes());
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        let (kind, message) = errors::for_messages(status, failure);
        let id = request_id(&self.context);
        out.extend_from_slice(anthropic::error_body(kind, &message, &id).as_bytes());
    }
}

fn event(out: &mut Vec<u8>, name: &str, fields: &str) {
    let event = format!("event: {name}\ndata: {{\"type\":\"{name}\",{fields}}}\n\n");
    out.extend_from_slice(event.as_bytes());
}
