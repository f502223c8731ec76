//! The part of a streamed answer that passed on so far.

use base::Endpoint;
use bytes::Bytes;
use protocol::{
    json::JsonReader,
    sse::{Boundary, EventReader, EventTooLong, event_len},
};

use super::{
    CannotContinue, Rest, chat::Chat, completions::Completions, messages::Messages, record::Record,
    responses::Responses, shape::Shape,
};

/// The most text of an answer that is kept, in bytes; a longer answer is not continued.
pub const MAX_TEXT: usize = 1024 * 1024;

/// The longest part of an event that is held back until its rest comes, in bytes. A longer one passes as it comes, and
/// its answer is not continued.
pub const MAX_HALF: usize = 4 * 1024 * 1024;

/// How many bytes are kept unread.
const MAX_UNREAD: usize = 32 * 1024;

/// The part of a streamed answer that passed on so far, in the shape of a provider's endpoint.
///
/// Bytes are kept as they are, and read only when there are many of them, or when somebody asks. Whole events
/// pass only, so that the client is between two events whenever the provider is lost.
#[derive(Debug, Clone)]
pub struct Delivered {
    endpoint: Endpoint,
    /// Where the stream so far ends.
    boundary: Boundary,
    /// The beginning of an event.
    half: Vec<u8>,
    /// Whole events that passed and were not read yet.
    unread: Vec<u8>,
    reader: EventReader,
    json: JsonReader,
    pub(super) record: Record,
    pub(super) shape: Box<dyn Shape>,
    /// Whether nothing is noted any more.
    gave_up: bool,
}

impl Delivered {
    /// Before the first byte. `None`: answers of this endpoint are not continued.
    pub fn new(endpoint: Endpoint) -> Option<Self> {
        Some(Self {
            endpoint,
            boundary: Boundary::new(),
            half: Vec::new(),
            unread: Vec::new(),
            reader: EventReader::default(),
            json: JsonReader::default(),
            record: Record::default(),
            shape: shape_of(endpoint)?,
            gave_up: false,
        })
    }

    /// Takes the next bytes of the provider's answer; appends the whole events that pass on to `out`.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        self.boundary.feed(chunk);
        if self.half.is_empty() && (self.gave_up || self.boundary.at_event_start()) {
            self.note(chunk);
            return out.extend_from_slice(chunk);
        }
        self.half.extend_from_slice(chunk);
        let mut whole = 0;
        while let Some(len) = event_len(&self.half[whole..]) {
            whole += len;
        }
        let half = self.half.split_off(whole);
        let events = std::mem::replace(&mut self.half, half);
        self.note(&events);
        out.extend_from_slice(&events);
        if self.half.len() > MAX_HALF {
            self.give_up(CannotContinue::TooLong);
            out.append(&mut self.half);
        }
    }

    /// The same without a copy, where the chunk is whole events, as it nearly always is.
    pub fn pass(&mut self, chunk: Bytes) -> Bytes {
        let mut ahead = self.boundary.clone();
        ahead.feed(&chunk);
        if self.half.is_empty() && (self.gave_up || ahead.at_event_start()) {
            self.boundary = ahead;
            self.note(&chunk);
            return chunk;
        }
        let mut out = Vec::with_capacity(self.half.len() + chunk.len());
        self.feed(&chunk, &mut out);
        out.into()
    }

    /// The provider's answer has ended by itself: half an event passes, too, as it came.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        let half = std::mem::take(&mut self.half);
        self.note(&half);
        out.extend_from_slice(&half);
    }

    /// The rest that is missing.
    pub fn rest(&mut self) -> Rest {
        self.read();
        self.record.rest()
    }

    /// How many tokens were delivered, as far as can be told.
    pub fn tokens(&mut self) -> u64 {
        self.read();
        self.record.tokens()
    }

    /// How many characters were delivered, thoughts included.
    pub fn characters(&mut self) -> u64 {
        self.read();
        let record = &self.record;
        (record.text.chars().count() + record.thoughts.chars().count()) as u64
    }

    /// The text that was delivered, without thoughts.
    pub fn text(&mut self) -> &str {
        self.read();
        &self.record.text
    }

    /// Notes whole events that passed on.
    pub(super) fn note(&mut self, events: &[u8]) {
        if self.gave_up {
            return;
        }
        if self.unread.len() + events.len() > MAX_UNREAD {
            self.read();
        }
        if !self.gave_up {
            self.unread.extend_from_slice(events);
        }
    }

    /// The provider is lost, and with it the rest of the event that was held back.
    pub(super) fn break_off(&mut self) {
        self.half = Vec::new();
        self.boundary = Boundary::new();
        self.read();
    }

    /// Reads what passed since it was read last.
    pub(super) fn read(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        let Self { shape, json, record, .. } = self;
        let read = self.reader.feed(&unread, |data| {
            if !data.trim_ascii().is_empty() {
                shape.read(data, json, record);
            }
            Ok::<_, EventTooLong>(())
        });
        self.unread = unread;
        self.unread.clear();
        let record = &self.record;
        if read.is_err() || record.text.len() + record.thoughts.len() > MAX_TEXT {
            self.give_up(CannotContinue::TooLong);
        }
    }

    /// Lets go of all that was noted.
    fn give_up(&mut self, reason: CannotContinue) {
        if let Some(nothing) = shape_of(self.endpoint) {
            self.shape = nothing;
        }
        self.record = Record { reason: Some(reason), ..Record::default() };
        self.unread = Vec::new();
        self.gave_up = true;
    }
}

/// The bytes that end the answer where only its end was lost. An answer whose reason of the end has not passed is said
/// to have reached its length.
pub fn closing(delivered: &mut Delivered) -> Vec<u8> {
    delivered.break_off();
    let mut out = Vec::new();
    if !delivered.record.over {
        delivered.shape.close(&delivered.record, &mut out);
    }
    out
}

/// The shape of an endpoint's answers; `None` where they are not continued.
fn shape_of(endpoint: Endpoint) -> Option<Box<dyn Shape>> {
    Some(match endpoint {
        Endpoint::ChatCompletions => Box::new(Chat::default()),
        Endpoint::Completions => Box::new(Completions::default()),
        Endpoint::Messages => Box::new(Messages::default()),
        Endpoint::Responses => Box::new(Responses::default()),
        _ => return None,
    })
}
