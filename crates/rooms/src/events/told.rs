//! One event, in the forms that it has.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use base::{KeyId, RoomId};
use bytes::Bytes;
use protocol::room::{RoomEvent, ServerMessage};

use super::Form;

/// Something to tell watchers: as a named event, as a message of the spec, or as both.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// The named event.
    pub event: Option<RoomEvent>,
    /// The spec's message.
    pub message: Option<ServerMessage>,
}

/// [`Told`], as bytes; only the id, which its log gives it, is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The whole frame of the named event; empty when there is none.
    named: String,
    /// Whether stock watchers get the named event.
    stock: bool,
    /// The JSON of the message; empty when there is none.
    message: String,
}

/// The room that an event of the log of all rooms is from, as far as it decides who may see it. It
/// holds no lock, so that asking costs nothing.
#[derive(Debug)]
pub struct Source {
    room: RoomId,
    public: bool,
    owner: Option<KeyId>,
    guarded: AtomicBool,
}

/// An event with its id: one buffer for all its forms.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The id; those of one log rise by one.
    pub(super) id: u64,
    /// Whose event it is, in the log of all rooms.
    pub(super) source: Option<Arc<Source>>,
    /// `id: N\n`, the named event's frame, the message's frame.
    bytes: Bytes,
    /// Where the named event's frame without its id begins.
    named_at: usize,
    /// Where the named event's frame ends and the message's begins.
    named_end: usize,
    /// Whether stock watchers get the named event.
    stock: bool,
}

impl Told {
    /// A named event alone.
    pub fn event(event: RoomEvent) -> Self {
        Self { event: Some(event), message: None }
    }

    /// A message of the spec alone.
    pub fn message(message: ServerMessage) -> Self {
        Self { event: None, message: Some(message) }
    }

    /// The same thing as an event and as a message.
    pub fn both(event: RoomEvent, message: ServerMessage) -> Self {
        Self { event: Some(event), message: Some(message) }
    }

    /// It, as bytes: happened `now` in the room of this six-character code.
    pub fn encode(&self, now: u64, room_code: &str) -> Encoded {
        let event = self.event.as_ref();
        Encoded {
            named: event.map(|event| event.frame(None, now, room_code)).unwrap_or_default(),
            stock: event.is_some_and(|event| !matches!(event, RoomEvent::LlmToken(_))),
            message: self.message.as_ref().map(ServerMessage::encode).unwrap_or_default(),
        }
    }
}

impl Encoded {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.message.is_empty()
    }

    /// Whether there is a message.
    pub(super) fn has_message(&self) -> bool {
        !self.message.is_empty()
    }

    /// In which forms there is something to tell.
    pub(super) fn forms(&self) -> [bool; Form::COUNT] {
        Form::ALL.map(|form| match form {
            Form::Messages => self.has_message(),
            Form::Named => self.stock,
            Form::NamedWithIds => !self.named.is_empty(),
        })
    }

    /// Only the message: what the log of all rooms keeps.
    pub(super) fn without_event(&self) -> Self {
        Self { named: String::new(), stock: false, message: self.message.clone() }
    }

    pub(super) fn with_id(&self, id: u64, source: Option<Arc<Source>>) -> Entry {
        let id_line = format!("id: {id}\n");
        let parts: &[&str] = match (self.named.is_empty(), self.message.is_empty()) {
            (true, true) => &[],
            (false, true) => &[&id_line, &self.named],
            (true, false) => &[&id_line, "data: ", &self.message, "\n\n"],
            (false, false) => &[&id_line, &self.named, &id_line, "data: ", &self.message, "\n\n"],
        };
        let has_event = !self.named.is_empty();
        let named_at = if has_event { id_line.len() } else { 0 };
        let named_end = named_at + self.named.len();
        let bytes = Bytes::from(parts.concat());
        Entry { id, source, bytes, named_at, named_end, stock: self.stock }
    }
}

impl Source {
    /// A room without a password, by what does not change of it.
    pub fn new(room: RoomId, public: bool, owner: Option<KeyId>) -> Self {
        Self { room, public, owner, guarded: AtomicBool::new(false) }
    }

    /// From now on it has a password, or none.
    pub fn set_guarded(&self, guarded: bool) {
        self.guarded.store(guarded, Ordering::Relaxed);
    }

    /// Whether it has a password.
    pub fn is_guarded(&self) -> bool {
        self.guarded.load(Ordering::Relaxed)
    }

    /// Its id.
    pub fn id(&self) -> &RoomId {
        &self.room
    }

    /// Whether it is listed for everybody.
    pub fn is_public(&self) -> bool {
        self.public
    }

    /// The key that made it.
    pub fn owner(&self) -> Option<&KeyId> {
        self.owner.as_ref()
    }
}

impl Entry {
    /// Its frame in a form, without copying it; `None` when it has no such form.
    pub(super) fn frame(&self, form: Form) -> Option<Bytes> {
        self.range(form).map(|range| self.bytes.slice(range))
    }

    /// The same, to be copied.
    pub(super) fn text(&self, form: Form) -> Option<&[u8]> {
        self.range(form).map(|range| &self.bytes[range])
    }

    /// Bytes that it takes in memory, itself included.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    fn range(&self, form: Form) -> Option<std::ops::Range<usize>> {
        let range = match form {
            Form::Messages => self.named_end..self.bytes.len(),
            Form::Named if self.stock => self.named_at..self.named_end,
            Form::Named => 0..0,
            Form::NamedWithIds => 0..self.named_end,
        };
        (!range.is_empty()).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use protocol::room::{
        event::ParticipantRef,
        message::{LlmToken, ParticipantLeft},
    };

    use super::*;

    fn left() -> Told {
        Told::both(
            RoomEvent::ParticipantLeft(ParticipantRef { participant_id: "p9".to_owned() }),
            ServerMessage::ParticipantLeft(ParticipantLeft { participant_id: "p9".to_owned() }),
        )
    }

    fn text(entry: &Entry, form: Form) -> Option<String> {
        let frame = entry.frame(form)?;
        assert_eq!(entry.text(form), Some(&frame[..]));
        Some(String::from_utf8(frame.to_vec()).unwrap())
    }

    #[test]
    fn an_event_has_the_frames_that_each_sort_of_client_reads() {
        let entry = left().encode(1_795_171_198_228, "NZZ6LS").with_id(7, None);
        let named = "event: participant.left\ndata: {\"type\":\"participant.left\",\
                     \"timestamp\":1795171198228,\"roomCode\":\"NZZ6LS\",\
                     \"data\":{\"participantId\":\"p9\"}}\n\n";
        assert_eq!(text(&entry, Form::Named).unwrap(), named);
        assert_eq!(text(&entry, Form::NamedWithIds).unwrap(), format!("id: 7\n{named}"));
        let message =
            "id: 7\ndata: {\"type\":\"room:participant-left\",\"participantId\":\"p9\"}\n\n";
        assert_eq!(text(&entry, Form::Messages).unwrap(), message);
    }

    #[test]
    fn what_has_no_message_has_no_frame_for_those_who_read_messages_and_the_other_way_round() {
        let Told { event, message } = left();
        let event = Told { event, message: None }.encode(1, "A").with_id(1, None);
        assert!(text(&event, Form::Messages).is_none());
        assert!(text(&event, Form::Named).is_some());
        let message = Told { event: None, message }.encode(1, "A").with_id(1, None);
        assert!(text(&message, Form::Messages).unwrap().starts_with("id: 1\ndata: {"));
        assert!(text(&message, Form::Named).is_none());
        assert!(text(&message, Form::NamedWithIds).is_none());
    }

    #[test]
    fn stock_clients_get_no_tokens() {
        let token = LlmToken {
            request_id: "1".to_owned(),
            participant_id: "p".to_owned(),
            token: "two\nlines".to_owned(),
            seq: 0,
        };
        let told = Told::both(RoomEvent::LlmToken(token.clone()), ServerMessage::LlmToken(token));
        let entry = told.encode(1, "A").with_id(1, None);
        assert!(text(&entry, Form::Named).is_none());
        assert!(text(&entry, Form::NamedWithIds).unwrap().contains("event: llm.token\n"));
        assert!(text(&entry, Form::Messages).unwrap().contains("two\\nlines"));
    }
}
