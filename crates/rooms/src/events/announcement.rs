//! One event in all its forms.

use std::{
    cell::OnceCell,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use base::{KeyId, RoomId};
use bytes::Bytes;
use protocol::room::{RoomEvent, ServerMessage};

use super::{Form, discreet::discreet};

/// The most bytes that the field names and numbers of a job's frames take, in all forms.
const FIELDS: usize = 768;

/// An event for watchers: a named event, a message of the spec, or both.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Announcement {
    /// The named event.
    pub event: Option<RoomEvent>,
    /// The spec's message.
    pub message: Option<ServerMessage>,
}

/// An [`Announcement`] ready for a log. Its bytes are made once, when a watcher reads them: most
/// events of jobs are never read.
#[derive(Debug, Clone)]
pub struct EncodedEvent {
    announcement: Arc<Announcement>,
    now: u64,
    room_code: Arc<str>,
    /// Whether the named event is included; the log of all rooms keeps messages only.
    with_event: bool,
}

/// The room of an event in the log of all rooms: the fields that decide who may see it. It has no
/// lock, so reading them is cheap.
#[derive(Debug)]
pub struct Source {
    room: RoomId,
    public: bool,
    owner: Option<KeyId>,
    guarded: AtomicBool,
}

/// How much of one room a watcher of all rooms sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Nothing.
    Nothing,
    /// That something happens, without the contents.
    Stirrings,
    /// Everything.
    All,
}

/// An event with its id.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The id; the ids of one log increase.
    pub(super) id: u64,
    /// The room of an event, in the log of all rooms.
    pub(super) source: Option<Arc<Source>>,
    encoded: EncodedEvent,
    /// The size that counts towards the log's bound, in bytes.
    size: usize,
    made: OnceCell<EncodedBytes>,
}

/// All forms of an event in one buffer.
#[derive(Debug, Clone)]
struct EncodedBytes {
    /// `id: N\n`, the named event's frame, the message's frame.
    bytes: Bytes,
    /// The offset at which the named event's frame without its id begins.
    named_at: usize,
    /// The offset at which the named event's frame ends and the message's begins.
    named_end: usize,
}

impl Announcement {
    /// A named event only.
    pub fn event(event: RoomEvent) -> Self {
        Self { event: Some(event), message: None }
    }

    /// A message of the spec only.
    pub fn message(message: ServerMessage) -> Self {
        Self { event: None, message: Some(message) }
    }

    /// The same event as a named event and as a message.
    pub fn both(event: RoomEvent, message: ServerMessage) -> Self {
        Self { event: Some(event), message: Some(message) }
    }

    /// Prepares it for a log: it happened at `now` in the room of this six-character code.
    pub fn encode(self, now: u64, room_code: impl Into<Arc<str>>) -> EncodedEvent {
        let room_code = room_code.into();
        EncodedEvent { announcement: Arc::new(self), now, room_code, with_event: true }
    }

    /// The most bytes of text in it, where that is known without encoding it: in events of jobs,
    /// which are most of all events.
    fn text_of_job(&self) -> Option<usize> {
        let of_event = match &self.event {
            None => 0,
            Some(RoomEvent::LlmRequest(it)) => {
                it.request_id.len() + it.participant_id.len() + it.model.len()
            }
            Some(RoomEvent::LlmComplete(it)) => {
                it.request_id.len() + it.participant_id.len() + it.model.len()
            }
            Some(RoomEvent::LlmError(it)) => {
                let who = it.participant_id.len() + it.nickname.len() + it.endpoint.len();
                it.request_id.len() + who + it.model.len() + it.error.len()
            }
            Some(_) => return None,
        };
        let of_message = match &self.message {
            None => 0,
            Some(ServerMessage::LlmComplete(it)) => it.request_id.len() + it.participant_id.len(),
            Some(ServerMessage::LlmError(it)) => {
                it.request_id.len() + it.participant_id.len() + it.error.len()
            }
            Some(_) => return None,
        };
        Some(of_event + of_message)
    }
}

impl EncodedEvent {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.event().is_none() && !self.has_message()
    }

    pub(super) fn has_message(&self) -> bool {
        self.announcement.message.is_some()
    }

    /// The forms that it has.
    pub(super) fn forms(&self) -> [bool; Form::COUNT] {
        Form::ALL.map(|form| self.has(form))
    }

    /// Its message only: what the log of all rooms keeps.
    pub(super) fn without_event(&self) -> Self {
        Self { with_event: false, ..self.clone() }
    }

    pub(super) fn with_id(&self, id: u64, source: Option<Arc<Source>>) -> Entry {
        let made = OnceCell::new();
        let entry = Entry { id, source, encoded: self.clone(), size: 0, made };
        // The ring needs a size now. Of events of jobs an upper bound will do, so they are not encoded for it.
        let bytes = match self.announcement.text_of_job() {
            // A character may be escaped to six bytes; the names of the fields come on top.
            Some(text) => text.saturating_mul(6) + FIELDS,
            None => entry.made().bytes.len(),
        };
        Entry { size: bytes + size_of::<Entry>(), ..entry }
    }

    fn has(&self, form: Form) -> bool {
        match form {
            Form::Messages => self.has_message(),
            // Stock clients do not know tokens.
            Form::Named => self.event().is_some_and(|it| !matches!(it, RoomEvent::LlmToken(_))),
            Form::NamedWithIds => self.event().is_some(),
        }
    }

    fn event(&self) -> Option<&RoomEvent> {
        self.announcement.event.as_ref().filter(|_| self.with_event)
    }

    fn make(&self, id: u64) -> EncodedBytes {
        let id_line = format!("id: {id}\n");
        let frame = |event: &RoomEvent| event.frame(None, self.now, &self.room_code);
        let named = self.event().map(frame).unwrap_or_default();
        let message =
            self.announcement.message.as_ref().map(ServerMessage::encode).unwrap_or_default();
        let parts: &[&str] = match (named.is_empty(), message.is_empty()) {
            (true, true) => &[],
            (false, true) => &[&id_line, &named],
            (true, false) => &[&id_line, "data: ", &message, "\n\n"],
            (false, false) => &[&id_line, &named, &id_line, "data: ", &message, "\n\n"],
        };
        let named_at = if named.is_empty() { 0 } else { id_line.len() };
        let named_end = named_at + named.len();
        EncodedBytes { bytes: Bytes::from(parts.concat()), named_at, named_end }
    }
}

impl Source {
    /// The source for a room without a password, from the fields that do not change.
    pub fn new(room: RoomId, public: bool, owner: Option<KeyId>) -> Self {
        Self { room, public, owner, guarded: AtomicBool::new(false) }
    }

    /// Sets whether the room has a password.
    pub fn set_guarded(&self, guarded: bool) {
        self.guarded.store(guarded, Ordering::Relaxed);
    }

    /// Whether the room has a password.
    pub fn is_guarded(&self) -> bool {
        self.guarded.load(Ordering::Relaxed)
    }

    /// The id of the room.
    pub fn id(&self) -> &RoomId {
        &self.room
    }

    /// Whether the room is listed publicly.
    pub fn is_public(&self) -> bool {
        self.public
    }

    /// The key that created the room.
    pub fn owner(&self) -> Option<&KeyId> {
        self.owner.as_ref()
    }
}

impl Entry {
    pub(super) fn has(&self, form: Form) -> bool {
        self.encoded.has(form)
    }

    /// Its frame in a form, without copying it; `None` when it has no such form.
    pub(super) fn frame(&self, form: Form) -> Option<Bytes> {
        let made = self.made_for(form)?;
        Some(made.bytes.slice(made.range(form)))
    }

    /// The same frame, borrowed.
    pub(super) fn text(&self, form: Form) -> Option<&[u8]> {
        let made = self.made_for(form)?;
        Some(&made.bytes[made.range(form)])
    }

    /// Its message for a watcher that may know that something happened, but not what. It is encoded
    /// for each such watcher, since there are few.
    pub(super) fn discreet(&self) -> Option<Bytes> {
        let message = discreet(self.encoded.announcement.message.as_ref()?).encode();
        Some(format!("id: {}\ndata: {message}\n\n", self.id).into())
    }

    /// Its size in bytes, including this struct.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    fn made_for(&self, form: Form) -> Option<&EncodedBytes> {
        self.has(form).then(|| self.made())
    }

    fn made(&self) -> &EncodedBytes {
        self.made.get_or_init(|| self.encoded.make(self.id))
    }
}

impl EncodedBytes {
    fn range(&self, form: Form) -> Range<usize> {
        match form {
            Form::Messages => self.named_end..self.bytes.len(),
            Form::Named => self.named_at..self.named_end,
            Form::NamedWithIds => 0..self.named_end,
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::room::{
        Protocol,
        event::{LlmFailed, ParticipantRef, Stage},
        message::{LlmError, LlmToken, ParticipantLeft},
    };

    use super::*;

    fn left() -> Announcement {
        Announcement::both(
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
    fn an_event_without_a_message_has_no_frame_for_readers_of_messages_and_vice_versa() {
        let Announcement { event, message } = left();
        let event = Announcement { event, message: None }.encode(1, "A").with_id(1, None);
        assert!(text(&event, Form::Messages).is_none());
        assert!(text(&event, Form::Named).is_some());
        let message = Announcement { event: None, message }.encode(1, "A").with_id(1, None);
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
        let announcement =
            Announcement::both(RoomEvent::LlmToken(token.clone()), ServerMessage::LlmToken(token));
        let entry = announcement.encode(1, "A").with_id(1, None);
        assert!(text(&entry, Form::Named).is_none());
        assert!(text(&entry, Form::NamedWithIds).unwrap().contains("event: llm.token\n"));
        assert!(text(&entry, Form::Messages).unwrap().contains("two\\nlines"));
    }

    /// Otherwise a log could grow over its bound by what nobody has read yet.
    #[test]
    fn a_frame_made_on_reading_counts_for_more_than_it_takes() {
        for text in ["", "\u{1}\u{1}\"\\\n", "plain words"] {
            let text = text.repeat(100);
            let failed = LlmFailed {
                request_id: text.clone(),
                participant_id: text.clone(),
                nickname: text.clone(),
                endpoint: text.clone(),
                model: text.clone(),
                protocol: Protocol::ChatCompletions,
                stage: Stage::Dispatch,
                error: text.clone(),
            };
            let (request_id, participant_id) = (text.clone(), text.clone());
            let message = LlmError { request_id, participant_id, error: text };
            let announcement =
                Announcement::both(RoomEvent::LlmError(failed), ServerMessage::LlmError(message));
            let entry = announcement.encode(u64::MAX, "AAAAAA").with_id(u64::MAX, None);
            assert!(entry.made.get().is_none(), "nobody has read it");
            let frames = entry.frame(Form::NamedWithIds).unwrap().len()
                + entry.frame(Form::Messages).unwrap().len();
            assert!(frames + size_of::<Entry>() <= entry.size(), "{frames} {}", entry.size());
        }
    }
}
