//! The part of a streamed answer that was delivered to the client so far.

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

/// The longest incomplete event that is held back until its rest comes, in bytes. A longer one is passed on in
/// pieces, and its answer is not continued.
pub const MAX_HALF: usize = 4 * 1024 * 1024;

/// How many delivered bytes are kept before they are read.
const MAX_UNREAD: usize = 32 * 1024;

/// The part of a streamed answer that was delivered so far, in the shape of a provider's endpoint.
///
/// Bytes are kept unread, and read only when there are many of them or a method needs it. Only whole events
/// are passed on, so that a lost provider always leaves the client between two events.
#[derive(Debug, Clone)]
pub struct Delivered {
    endpoint: Endpoint,
    /// Whether the stream so far ends between two events.
    boundary: Boundary,
    /// The incomplete event that is held back.
    half: Vec<u8>,
    /// Whole events that were passed on and not read yet.
    unread: Vec<u8>,
    reader: EventReader,
    json: JsonReader,
    pub(super) record: Record,
    pub(super) shape: Box<dyn Shape>,
    /// Whether the answer is too long to be continued, so that it is no longer noted.
    gave_up: bool,
}

impl Delivered {
    /// An answer without any byte yet. `None`: answers of this endpoint are not continued.
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

    /// Takes the next bytes of the provider's answer, and appends to `out` the whole events that can
    /// be passed on.
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

    /// As [`Self::feed`], but without a copy if the chunk consists of whole events, as it nearly
    /// always does.
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

    /// Ends an answer that the provider has ended by itself. An incomplete event is passed on as it
    /// came.
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

    /// How many tokens were delivered, as far as is known.
    pub fn tokens(&mut self) -> u64 {
        self.read();
        self.record.tokens()
    }

    /// How many characters were delivered, including thoughts.
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

    /// Notes whole events that were passed on.
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

    /// The provider is lost: drops the incomplete event that was held back.
    pub(super) fn break_off(&mut self) {
        self.half = Vec::new();
        self.boundary = Boundary::new();
        self.read();
    }

    /// Reads the events that were noted since the last call.
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

    /// Frees all that was noted, and keeps only the reason why the answer cannot be continued.
    fn give_up(&mut self, reason: CannotContinue) {
        if let Some(nothing) = shape_of(self.endpoint) {
            self.shape = nothing;
        }
        self.record = Record { reason: Some(reason), ..Record::default() };
        self.unread = Vec::new();
        self.gave_up = true;
    }
}

/// The bytes that end an answer of which only the end was lost. If its finish reason was not delivered, it says that
/// the answer reached its limit of tokens.
pub fn closing(delivered: &mut Delivered) -> Vec<u8> {
    delivered.break_off();
    let mut out = Vec::new();
    if !delivered.record.over {
        delivered.shape.close(&delivered.record, &mut out);
    }
    out
}

/// The shape of an endpoint's answers; `None` if they are not continued.
fn shape_of(endpoint: Endpoint) -> Option<Box<dyn Shape>> {
    Some(match endpoint {
        Endpoint::ChatCompletions => Box::new(Chat::default()),
        Endpoint::Completions => Box::new(Completions::default()),
        Endpoint::Messages => Box::new(Messages::default()),
        Endpoint::Responses => Box::new(Responses::default()),
        _ => return None,
    })
}
