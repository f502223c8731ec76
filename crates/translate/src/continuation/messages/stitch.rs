//! The next provider's events as the rest of the first one's.

use protocol::{failure::BadAnswer, json::JsonReader};
use serde_json::{Value, json};

use super::{
    super::{
        record::{Record, Repetition},
        shape::{self, Object, Stitch, write_event},
        tokens::Before,
    },
    Kind, Messages,
};

/// Makes the rest of a message from another provider's events.
#[derive(Debug)]
pub(super) struct MessageStitch {
    begun: bool,
    /// The client's open block.
    open: Option<(u64, Kind)>,
    /// The number of the client's next block.
    next: u64,
    /// The provider's open block, by the provider's number for it.
    theirs: Option<u64>,
    /// The start of the provider's block while it has no content. An empty block is left out.
    pending: Option<(Object, Kind)>,
    before: Before,
    repetition: Repetition,
    over: bool,
}

impl MessageStitch {
    pub(super) fn new(delivered: &Messages, record: &Record) -> Self {
        let last = delivered.blocks.last();
        Self {
            begun: delivered.begun,
            open: last.filter(|block| block.is_open).map(|block| (block.index, block.kind)),
            next: last.map_or(0, |block| block.index.saturating_add(1)),
            theirs: None,
            pending: None,
            before: Before::of(record),
            repetition: Repetition::of(record),
            over: false,
        }
    }

    fn start(&mut self, event: Object, out: &mut Vec<u8>) {
        self.theirs = Some(event.get("index").and_then(Value::as_u64).unwrap_or_default());
        let block = event.get("content_block").unwrap_or(&Value::Null);
        let Some(kind) = block["type"].as_str().and_then(Kind::of) else {
            // A tool's block is never continued, so its kind does not matter.
            return self.begin(event, Kind::Text, out);
        };
        if self.open.is_none_or(|(_, open)| open != kind) {
            self.pending = Some((event, kind));
            return;
        }
        // Some providers put the beginning of the text into the start of the block.
        let (name, field) = kind.delta();
        let first = block[field].as_str().unwrap_or_default();
        if !first.is_empty() {
            let mut delta = Object::new();
            delta.insert("type".to_owned(), "content_block_delta".into());
            delta.insert("delta".to_owned(), json!({"type": name, field: first}));
            self.delta(delta, out);
        }
    }

    /// Begins a block of the client's.
    fn begin(&mut self, mut start: Object, kind: Kind, out: &mut Vec<u8>) {
        self.close(out);
        start.insert("index".to_owned(), self.next.into());
        self.open = Some((self.next, kind));
        self.next = self.next.saturating_add(1);
        write_event(&start.into(), out);
    }

    fn delta(&mut self, mut event: Object, out: &mut Vec<u8>) {
        if let Some(text) = event.get_mut("delta").and_then(|delta| delta.get_mut("text")) {
            let new = self.repetition.without(text.as_str().unwrap_or_default());
            if new.is_empty() {
                return;
            }
            *text = new.into();
        }
        if let Some((start, kind)) = self.pending.take() {
            self.begin(start, kind, out);
        }
        let Some((index, _)) = self.open else { return };
        event.insert("index".to_owned(), index.into());
        write_event(&event.into(), out);
    }

    fn stop(&mut self, out: &mut Vec<u8>) {
        self.theirs = None;
        if self.pending.take().is_none() {
            self.close(out);
        }
    }

    /// Ends the client's open block.
    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some((index, _)) = self.open.take() {
            write_event(&json!({"type": "content_block_stop", "index": index}), out);
        }
    }

    /// Whether an event belongs to the provider's open block. llama.cpp also ends blocks of thoughts that
    /// were in the request.
    fn is_of_open(&self, event: &Object) -> bool {
        let index = event.get("index").and_then(Value::as_u64);
        self.theirs.is_some() && index.is_none_or(|index| Some(index) == self.theirs)
    }
}

impl Stitch for MessageStitch {
    fn event(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if self.over || data.is_empty() {
            return Ok(());
        }
        let mut event = shape::object(data, json)?;
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "message_start" if self.begun => {}
            "content_block_start" => self.start(event, out),
            "content_block_delta" if self.is_of_open(&event) => self.delta(event, out),
            "content_block_stop" if self.is_of_open(&event) => self.stop(out),
            "content_block_delta" | "content_block_stop" => {}
            "message_delta" => {
                self.close(out);
                if let Some(usage) = event.get_mut("usage").and_then(Value::as_object_mut) {
                    self.before.add_to_message(usage);
                }
                write_event(&event.into(), out);
            }
            _ => {
                self.over = matches!(&*kind, "message_stop" | "error");
                write_event(&event.into(), out);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
