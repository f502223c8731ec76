//! Responses.
//!
//! - `item`: the events of a response, and the delivered parts of its items
//! - `stitch`: the next provider's events as the rest of the first one's

mod item;
mod stitch;

use base::Continuation;
use protocol::json::{JsonReader, fields::TextOrList};
use serde_json::{Value, value::RawValue};

use self::item::{Event, Item, Kind};
use super::{
    CannotContinue,
    body::{BodyEdits, Message},
    record::Record,
    shape::{Object, Shape, Stitch},
};

/// The notes about an answer of Responses.
#[derive(Debug, Clone, Default)]
pub(super) struct Responses {
    /// The response object of the first event.
    response: Option<Object>,
    /// Whether an event has said that it is in progress.
    in_progress: bool,
    /// The number of the last event; `None` if the provider does not number events.
    number: Option<u64>,
    items: Vec<Item>,
}

impl Shape for Responses {
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
        &["max_output_tokens", "max_tokens"]
    }

    fn append(
        &self,
        record: &Record,
        _: Continuation,
        edits: &mut BodyEdits<'_>,
    ) -> Result<(), CannotContinue> {
        let said: Vec<String> = self.as_input(record).map(|item| item.to_string()).collect();
        let input = edits.field("input").ok_or_else(super::body::unreadable)?;
        match TextOrList::read(input, "input")? {
            TextOrList::Text(_) => {
                let question = format!(r#"[{{"role":"user","content":{}}}"#, input.get());
                edits.replace(input, format!("{question},{}]", said.join(",")));
            }
            TextOrList::List(items) => {
                // If the request itself has the beginning of the answer, two messages of the assistant would follow
                // one another.
                if items.last().is_some_and(|last| is_assistants(last)) {
                    return Err(CannotContinue::Asked("input"));
                }
                edits.append_items(input, &said.join(","));
            }
        }
        Ok(())
    }
    fn close(&self, record: &Record, out: &mut Vec<u8>) {
        stitch::ResponseStitch::new(self, record).close_as_too_long(record.tokens(), out);
    }

    fn stitch(&self, record: &Record) -> Box<dyn Stitch> {
        Box::new(stitch::ResponseStitch::new(self, record))
    }
}

impl Responses {
    fn event(&mut self, event: &Event<'_>, record: &mut Record) {
        self.number = event.sequence_number.0.or(self.number);
        match &*event.kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                self.in_progress |= &*event.kind == "response.in_progress";
                if let (None, Some(response)) = (&self.response, event.response) {
                    self.response = serde_json::from_str(response.get()).ok();
                }
            }
            "response.output_item.added" => self.added(event, record),
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                self.open_item(event).open(event);
            }
            "response.output_text.delta" => self.delta(Kind::Message, event, record),
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                self.delta(Kind::Reasoning, event, record);
            }
            "response.refusal.delta" => record.refuse(CannotContinue::Refusal),
            "response.output_text.done"
            | "response.reasoning_text.done"
            | "response.reasoning_summary_text.done" => self.open_item(event).end_text(),
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                self.open_item(event).end_part();
            }
            "response.output_item.done" => self.done(event),
            "response.completed" | "response.incomplete" => record.over = true,
            "response.failed" | "error" => record.refuse(CannotContinue::Failed),
            kind if kind.starts_with("response.") => record.refuse(CannotContinue::ToolCall),
            _ => {}
        }
    }

    fn added(&mut self, event: &Event<'_>, record: &mut Record) {
        let item = event.item.and_then(|item| serde_json::from_str(item.get()).ok());
        match item.and_then(|item| Item::begun(item, event.output_index.0)) {
            Some(item) => self.items.push(item),
            None => record.refuse(CannotContinue::ToolCall),
        }
    }

    fn delta(&mut self, kind: Kind, event: &Event<'_>, record: &mut Record) {
        let piece = event.delta.0.as_deref().unwrap_or_default();
        match kind {
            Kind::Message => record.add_text(piece),
            Kind::Reasoning => record.add_thoughts(piece),
        }
        let item = self.open_item(event);
        if item.kind != kind {
            return record.refuse(CannotContinue::NotUnderstood);
        }
        item.add(event, piece);
    }

    fn done(&mut self, event: &Event<'_>) {
        let item = event.item.and_then(|item| serde_json::from_str(item.get()).ok());
        self.open_item(event).done = item;
    }

    /// The item that an event belongs to: the last one. If the provider did not announce an item, one is begun.
    fn open_item(&mut self, event: &Event<'_>) -> &mut Item {
        if self.items.last().is_none_or(|item| item.done.is_some()) {
            self.items.push(Item::unsaid(event));
        }
        let last = self.items.len() - 1;
        &mut self.items[last]
    }

    /// The delivered items in the form of a request's input: the thoughts, then one message with all of the text.
    /// There may be several delivered messages, but no request may end with two of the assistant.
    fn as_input(&self, record: &Record) -> impl Iterator<Item = Value> {
        let last = self.items.iter().rposition(|item| item.kind == Kind::Message);
        let items = self.items.iter().enumerate();
        items.filter(move |(at, item)| item.kind == Kind::Reasoning || Some(*at) == last).map(
            move |(at, item)| match Some(at) == last {
                true => item.with_text(&record.text).as_input(),
                false => item.as_input(),
            },
        )
    }
}

/// Whether the answer to this request may be continued.
pub(super) fn may_continue(body: &[u8]) -> Result<(), CannotContinue> {
    let edits = BodyEdits::of(body)?;
    edits.refuse(&[
        ("tool_choice", |choice| matches!(choice.get(), r#""auto""# | r#""none""#)),
        ("text", is_plain_text),
        ("top_logprobs", |raw| raw.get() == "0"),
        // Only the server that stored the earlier turns has them.
        ("previous_response_id", |_| false),
        ("conversation", |_| false),
        ("background", |_| false),
    ])
}

/// Whether the field `text` asks for no format.
fn is_plain_text(text: &RawValue) -> bool {
    let text = serde_json::from_str::<Value>(text.get()).unwrap_or_default();
    let format = &text["format"];
    format.is_null() || format["type"] == "text"
}

fn is_assistants(item: &RawValue) -> bool {
    serde_json::from_str::<Message<'_>>(item.get()).is_ok_and(|message| message.is_assistants())
}
