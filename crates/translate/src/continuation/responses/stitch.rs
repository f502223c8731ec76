//! The next provider's events as the rest of the first one's.

use protocol::{failure::BadAnswer, json::JsonReader};
use serde_json::{Value, json};

use super::{
    super::{
        record::{Record, Repetition},
        shape::{self, Object, Stitch, write_event},
        tokens::{Before, INPUT},
    },
    Responses,
    item::{Event, Item, Part},
};
use crate::answer::check_length;

/// The fields that a response keeps from its first event to its last.
const OF_THE_RESPONSE: [&str; 3] = ["id", "created_at", "model"];

/// Makes the rest of a response from another provider's events.
///
/// The events that repeat texts get the texts of the whole answer. Some providers send such events, and others
/// do not.
#[derive(Debug)]
pub(super) struct ResponseStitch {
    /// The response object of the first event.
    response: Option<Object>,
    /// Whether an event has said that it is in progress.
    in_progress: bool,
    /// The number of the client's next event; `None` if events are not numbered.
    number: Option<u64>,
    /// Whether items have numbers, and the next one.
    has_numbers: bool,
    next_item: u64,
    /// The items that are complete.
    done: Vec<Value>,
    /// The client's open item.
    open: Option<Item>,
    /// The id of the provider's item whose content goes into the open one.
    theirs: Option<String>,
    /// Whether the next part continues the open one.
    joins_part: bool,
    /// The provider's item while it has no content, and its events so far. An empty item is left
    /// out.
    pending: Option<(Item, Vec<Object>)>,
    /// The client's number of the open item of a tool.
    tool: Option<u64>,
    /// How many bytes of text came. They are kept until the end.
    text_bytes: usize,
    before: Before,
    repetition: Repetition,
    over: bool,
}

impl ResponseStitch {
    pub(super) fn new(delivered: &Responses, record: &Record) -> Self {
        let mut items = delivered.items.clone();
        let open = items.pop_if(|last| last.done.is_none());
        let next_item = delivered.items.len() as u64;
        let numbered = delivered.items.last().map(|item| item.index.is_some());
        Self {
            response: delivered.response.clone(),
            in_progress: delivered.in_progress,
            number: delivered.number.map(|last| last.saturating_add(1)),
            has_numbers: numbered.unwrap_or(delivered.number.is_some()),
            next_item,
            done: items.iter().map(Item::completed).collect(),
            joins_part: open.as_ref().is_some_and(|item| item.open_part().is_some()),
            open,
            theirs: None,
            pending: None,
            tool: None,
            text_bytes: 0,
            before: Before::of(record),
            repetition: Repetition::of(record),
            over: false,
        }
    }

    /// Ends the response as one that has reached its limit of tokens.
    pub(super) fn close_as_too_long(mut self, tokens: u64, out: &mut Vec<u8>) {
        self.close("incomplete", out);
        let mut response = self.response.clone().unwrap_or_default();
        let fields = json!({"status": "incomplete", "error": null, "output": self.done,
            "incomplete_details": {"reason": "max_output_tokens"},
            "usage": {"input_tokens": 0, "output_tokens": tokens, "total_tokens": tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0}}});
        response.extend(fields.as_object().cloned().unwrap_or_default());
        let mut event = Object::new();
        event.insert("type".to_owned(), "response.incomplete".into());
        event.insert("response".to_owned(), response.into());
        self.put(event, out);
    }

    /// Handles an event about the state of the response. The client gets it only if it had no such
    /// event before.
    fn state(&mut self, event: &Event<'_>, mut object: Object, out: &mut Vec<u8>) {
        if self.response.is_none() {
            self.number = self.number.or(event.sequence_number.0);
            self.has_numbers |= self.number.is_some();
            return self.put(object, out);
        }
        if &*event.kind == "response.in_progress" && !self.in_progress {
            self.in_progress = true;
            self.put_on(&mut object);
            self.put(object, out);
        }
    }

    /// Gives the response in an event the fields that it had at its beginning.
    fn put_on(&self, event: &mut Object) {
        let Some(response) = event.get_mut("response").and_then(Value::as_object_mut) else {
            return;
        };
        let first = self.response.iter().flatten();
        let first = first.filter(|(name, _)| OF_THE_RESPONSE.contains(&name.as_str()));
        response.extend(first.map(|(name, value)| (name.clone(), value.clone())));
    }

    fn item_added(&mut self, mut object: Object, out: &mut Vec<u8>) {
        let item = object.get("item").and_then(Value::as_object).cloned().unwrap_or_default();
        let index = self.has_numbers.then_some(self.next_item);
        let Some(item) = Item::begun(item, index) else {
            self.pending = None;
            self.close("completed", out);
            self.tool = Some(self.next_item);
            self.next_item += 1;
            set(&mut object, "output_index", index);
            return self.put(object, out);
        };
        self.theirs = Some(item.id().to_owned());
        let goes_on = |open: &Item| open.kind == item.kind && open.is_open();
        if !self.open.as_ref().is_some_and(goes_on) {
            self.pending = Some((item, vec![object]));
        }
    }

    fn part_added(&mut self, event: &Event<'_>, object: Object, out: &mut Vec<u8>) {
        if let Some((item, events)) = &mut self.pending {
            item.open(event);
            return events.push(object);
        }
        if std::mem::take(&mut self.joins_part) {
            return;
        }
        let Some(open) = &mut self.open else { return };
        open.open(event);
        self.put_of_item(object, out);
    }

    fn delta(
        &mut self,
        event: &Event<'_>,
        mut object: Object,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let piece = event.delta.0.as_deref().unwrap_or_default();
        let piece = match &*event.kind {
            "response.output_text.delta" => self.repetition.without(piece),
            _ => piece,
        };
        if piece.is_empty() {
            return Ok(());
        }
        self.text_bytes += piece.len();
        check_length(self.text_bytes)?;
        if let Some((item, events)) = self.pending.take() {
            self.begin(item, events, out);
        }
        if self.open.is_none() {
            let mut item = Item::unsaid(event);
            item.index = self.has_numbers.then_some(self.next_item);
            self.begin(item, Vec::new(), out);
        }
        self.joins_part = false;
        let Some(open) = &mut self.open else { return Ok(()) };
        open.add(event, piece);
        object.insert("delta".to_owned(), piece.into());
        self.put_of_item(object, out);
        Ok(())
    }

    /// Begins an item of the client's.
    fn begin(&mut self, item: Item, events: Vec<Object>, out: &mut Vec<u8>) {
        self.close("completed", out);
        self.next_item += 1;
        self.joins_part = false;
        self.open = Some(item);
        for event in events {
            self.put_of_item(event, out);
        }
    }

    /// Handles the end of a part, or of its text.
    fn part_done(&mut self, event: &Event<'_>, mut object: Object, out: &mut Vec<u8>) {
        let Some(open) = self.open.as_mut().filter(|_| self.pending.is_none()) else { return };
        if self.theirs.as_deref().is_none_or(|theirs| theirs != &*event.item_id) {
            return;
        }
        let Some(part) = open.parts.last().map(|part| part.text.clone()) else { return };
        match object.get_mut("part").and_then(Value::as_object_mut) {
            Some(part_there) => {
                part_there.insert("text".to_owned(), part.into());
                open.end_part();
            }
            None => {
                object.insert("text".to_owned(), part.into());
                open.end_text();
            }
        }
        self.put_of_item(object, out);
    }

    fn item_done(&mut self, mut object: Object, out: &mut Vec<u8>) {
        let Some(item) = object.get_mut("item").and_then(Value::as_object_mut) else { return };
        if let Some(index) = self.tool.filter(|_| !is_of_text(item)) {
            self.tool = None;
            self.done.push(item.clone().into());
            set(&mut object, "output_index", self.has_numbers.then_some(index));
            return self.put(object, out);
        }
        // llama.cpp also ends thoughts that were in the request.
        if self.theirs.as_deref() != item.get("id").and_then(Value::as_str) {
            return;
        }
        self.theirs = None;
        if self.pending.take().is_some() {
            return;
        }
        let Some(open) = self.open.take() else { return };
        item.insert("id".to_owned(), open.id().into());
        open.put_texts(item);
        self.done.push(item.clone().into());
        set(&mut object, "output_index", open.index);
        self.put(object, out);
    }

    /// Passes on any other event, such as one about a call's arguments.
    fn other(&mut self, mut object: Object, out: &mut Vec<u8>) {
        if let Some(index) = self.tool.filter(|_| object.contains_key("output_index")) {
            object.insert("output_index".to_owned(), index.into());
        }
        self.put(object, out);
    }

    fn last(&mut self, mut object: Object, failed: bool, out: &mut Vec<u8>) {
        self.pending = None;
        if !failed {
            self.close("completed", out);
        }
        self.put_on(&mut object);
        if let Some(response) = object.get_mut("response").and_then(Value::as_object_mut) {
            response.insert("output".to_owned(), self.done.clone().into());
            if let Some(text) = response.get_mut("output_text").filter(|text| text.is_string()) {
                *text = texts(&self.done).into();
            }
            if let Some(usage) = response.get_mut("usage").and_then(Value::as_object_mut) {
                self.before.add_to(usage, &INPUT);
            }
        }
        // `timings` of the second part alone would be taken for those of the whole answer.
        object.remove("timings");
        self.over = true;
        self.put(object, out);
    }

    /// Ends the client's open item, with the events that its provider did not send.
    fn close(&mut self, status: &str, out: &mut Vec<u8>) {
        let Some(open) = self.open.as_ref() else { return };
        let missing: Vec<Object> =
            open.parts.last().filter(|part| !part.done).map(missing).unwrap_or_default();
        for event in missing {
            self.put_of_item(event, out);
        }
        let Some(open) = self.open.take() else { return };
        let item = open.whole(status);
        self.done.push(item.clone().into());
        let mut event = Object::new();
        event.insert("type".to_owned(), "response.output_item.done".into());
        event.insert("item".to_owned(), item.into());
        set(&mut event, "output_index", open.index);
        self.put(event, out);
    }

    /// Writes an event of the open item.
    fn put_of_item(&mut self, mut event: Object, out: &mut Vec<u8>) {
        if let Some(open) = &self.open {
            if !event.contains_key("item") {
                event.insert("item_id".to_owned(), open.id().into());
            }
            set(&mut event, "output_index", open.index);
            let part = open.parts.last();
            for name in ["content_index", "summary_index"] {
                if let (true, Some(part)) = (event.contains_key(name), part) {
                    set(&mut event, name, part.index);
                }
            }
        }
        self.put(event, out);
    }

    /// Writes an event with the next number.
    fn put(&mut self, mut event: Object, out: &mut Vec<u8>) {
        set(&mut event, "sequence_number", self.number);
        self.number = self.number.map(|number| number.saturating_add(1));
        write_event(&event.into(), out);
    }
}

impl Stitch for ResponseStitch {
    fn event(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if self.over || data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let object = shape::object(data, json)?;
        let text = protocol::json::write(&object);
        let event: Event<'_> = serde_json::from_str(&text).unwrap_or_default();
        match &*event.kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                self.state(&event, object, out);
            }
            "response.output_item.added" => self.item_added(object, out),
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                self.part_added(&event, object, out);
            }
            "response.output_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta" => return self.delta(&event, object, out),
            "response.output_text.done"
            | "response.reasoning_text.done"
            | "response.content_part.done"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_summary_part.done" => self.part_done(&event, object, out),
            "response.output_item.done" => self.item_done(object, out),
            "response.completed" | "response.incomplete" => self.last(object, false, out),
            "response.failed" | "error" => self.last(object, true, out),
            _ => self.other(object, out),
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// The events that end a part, without those that came already.
fn missing(part: &Part) -> Vec<Object> {
    let (text, whole, index) = match part.kind.as_str() {
        "summary_text" => (
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "summary_index",
        ),
        "reasoning_text" => {
            ("response.reasoning_text.done", "response.content_part.done", "content_index")
        }
        _ => ("response.output_text.done", "response.content_part.done", "content_index"),
    };
    let mut events = Vec::new();
    if !part.text_done {
        let mut event = Object::new();
        event.insert("type".to_owned(), text.into());
        event.insert("text".to_owned(), part.text.clone().into());
        set(&mut event, index, part.index);
        events.push(event);
    }
    if part.has_begun {
        let mut event = Object::new();
        event.insert("type".to_owned(), whole.into());
        event.insert("part".to_owned(), part.whole());
        set(&mut event, index, part.index);
        events.push(event);
    }
    events
}

/// Sets a field to this value; `None` removes it.
fn set(object: &mut Object, name: &str, value: Option<u64>) {
    match value {
        Some(value) => drop(object.insert(name.to_owned(), value.into())),
        None => drop(object.remove(name)),
    }
}

fn is_of_text(item: &Object) -> bool {
    let kind = item.get("type").and_then(Value::as_str);
    matches!(kind, Some("message" | "reasoning"))
}

/// All text of these items.
fn texts(items: &[Value]) -> String {
    let parts = items.iter().filter_map(|item| item["content"].as_array()).flatten();
    let texts = parts.filter(|part| part["type"] == "output_text");
    texts.filter_map(|part| part["text"].as_str()).collect()
}
