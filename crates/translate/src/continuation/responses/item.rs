//! The events of a response, with the fields that are needed, and the delivered parts of its items.

use protocol::json::lenient::{Count, Text, TextOrJson, or_default};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::super::shape::Object;

/// The data of an event, with the fields of all types of events.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) sequence_number: Count,
    #[serde(borrow, default)]
    pub(super) item_id: Text<'a>,
    #[serde(default)]
    pub(super) output_index: Count,
    #[serde(default)]
    pub(super) content_index: Count,
    #[serde(default)]
    pub(super) summary_index: Count,
    #[serde(borrow, default)]
    pub(super) delta: TextOrJson<'a>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) part: PartHead<'a>,
}

/// The beginning of a part of content.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PartHead<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
}

/// The kind of an item. Items of other kinds belong to tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
}

/// An item.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) kind: Kind,
    /// The item as it was at its beginning, with its id.
    pub(super) head: Object,
    /// Its number; `None` if the provider gives none.
    pub(super) index: Option<u64>,
    pub(super) parts: Vec<Part>,
    /// The complete item, once the provider has sent it.
    pub(super) done: Option<Object>,
}

/// A part of an item's content.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its type: `output_text`, `reasoning_text`, `summary_text`.
    pub(super) kind: String,
    /// Its number; `None` if the provider gives none.
    pub(super) index: Option<u64>,
    /// Whether an event has announced its beginning.
    pub(super) has_begun: bool,
    pub(super) text: String,
    /// Whether events have announced the end of its text, and of the part itself.
    pub(super) text_done: bool,
    pub(super) done: bool,
}

impl Item {
    /// An item that begins; `None` for one of a tool.
    pub(super) fn begun(head: Object, index: Option<u64>) -> Option<Self> {
        let kind = match head.get("type")?.as_str()? {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            _ => return None,
        };
        Some(Self { kind, head, index, parts: Vec::new(), done: None })
    }

    /// The item of an event if the provider did not announce the item's beginning.
    pub(super) fn unsaid(event: &Event<'_>) -> Self {
        let is_thought = event.kind.starts_with("response.reasoning");
        let kind = if is_thought { Kind::Reasoning } else { Kind::Message };
        let name = if is_thought { "reasoning" } else { "message" };
        let head = json!({"type": name, "id": &*event.item_id, "role": "assistant"});
        let head = head.as_object().cloned().unwrap_or_default();
        Self { kind, head, index: event.output_index.0, parts: Vec::new(), done: None }
    }

    pub(super) fn id(&self) -> &str {
        self.head.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// A part begins.
    pub(super) fn open(&mut self, event: &Event<'_>) {
        let kind = event.part.kind.to_string();
        self.parts.push(Part::new(kind, event, true));
    }

    /// A piece of text comes.
    pub(super) fn add(&mut self, event: &Event<'_>, piece: &str) {
        if self.parts.last().is_none_or(|part| part.done || part.text_done) {
            let kind = match &*event.kind {
                "response.reasoning_summary_text.delta" => "summary_text",
                "response.reasoning_text.delta" => "reasoning_text",
                _ => "output_text",
            };
            self.parts.push(Part::new(kind.to_owned(), event, false));
        }
        if let Some(part) = self.parts.last_mut() {
            part.text.push_str(piece);
        }
    }

    pub(super) fn end_text(&mut self) {
        if let Some(part) = self.parts.last_mut() {
            part.text_done = true;
        }
    }

    pub(super) fn end_part(&mut self) {
        if let Some(part) = self.parts.last_mut() {
            (part.text_done, part.done) = (true, true);
        }
    }

    /// The part that text can still be added to.
    pub(super) fn open_part(&self) -> Option<&Part> {
        self.parts.last().filter(|part| !part.done && !part.text_done)
    }

    /// Whether text can still be added to it.
    pub(super) fn is_open(&self) -> bool {
        self.done.is_none() && (self.parts.is_empty() || self.open_part().is_some())
    }

    /// The whole item with the texts that were delivered, and this status.
    pub(super) fn whole(&self, status: &str) -> Object {
        let mut whole = self.done.clone().unwrap_or_else(|| self.head.clone());
        whole.insert("status".to_owned(), status.into());
        self.put_texts(&mut whole);
        whole
    }

    /// The item as its provider completed it, or would have completed it.
    pub(super) fn completed(&self) -> Value {
        self.done.clone().unwrap_or_else(|| self.whole("completed")).into()
    }

    /// Puts the texts that were delivered into a form of this item.
    pub(super) fn put_texts(&self, item: &mut Object) {
        let of = |summary: bool| {
            let parts = self.parts.iter().filter(|part| (part.kind == "summary_text") == summary);
            parts.map(Part::whole).collect::<Vec<_>>()
        };
        let (content, summary) = (of(false), of(true));
        if !content.is_empty() || self.kind == Kind::Message {
            put_parts(item, "content", content);
        }
        if !summary.is_empty() {
            put_parts(item, "summary", summary);
        }
    }

    /// The item with another text.
    pub(super) fn with_text(&self, text: &str) -> Self {
        let mut item = self.clone();
        item.parts.truncate(1);
        if let Some(part) = item.parts.first_mut() {
            text.clone_into(&mut part.text);
        }
        item
    }

    /// The item in the form of a request's input.
    pub(super) fn as_input(&self) -> Value {
        let status = if self.done.is_some() { "completed" } else { "in_progress" };
        let mut input = self.whole(status);
        if self.kind == Kind::Message {
            input.insert("role".to_owned(), "assistant".into());
        } else {
            input.remove("status");
            input.entry("summary").or_insert_with(|| json!([]));
        }
        input.into()
    }
}

/// Puts the parts into a list of the item. Parts that are in the list already keep their other
/// fields.
fn put_parts(item: &mut Object, name: &str, parts: Vec<Value>) {
    let list = item.entry(name).or_insert_with(|| json!([]));
    let Some(there) = list.as_array_mut() else { return };
    there.truncate(parts.len());
    for (at, part) in parts.into_iter().enumerate() {
        match there.get_mut(at) {
            Some(there) if there["type"] == part["type"] => there["text"] = part["text"].clone(),
            Some(there) => *there = part,
            None => there.push(part),
        }
    }
}

impl Part {
    fn new(kind: String, event: &Event<'_>, has_begun: bool) -> Self {
        let index = event.content_index.0.or(event.summary_index.0);
        Self { kind, index, has_begun, text: String::new(), text_done: false, done: false }
    }

    /// The part with all of its text.
    pub(super) fn whole(&self) -> Value {
        match self.kind.as_str() {
            "output_text" => {
                json!({"type": "output_text", "text": self.text, "annotations": [], "logprobs": []})
            }
            kind => json!({"type": kind, "text": self.text}),
        }
    }
}
