//! Reads clients' posted messages and servers' answers.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    config::GenerationConfig,
    decode_plane::{RawRoom, config, max_concurrent, password, specs},
    event::EventEnvelope,
    invalid::{Invalid, object},
    limits::{self, MAX_CODE, MAX_REQUEST_ID, MAX_SELECTOR, line},
    message::{
        ClientMessage, HostRegister, JoiningParticipant, ListRooms, LlmRequest, RoomJoin,
        ServerMessage, TuiRegister,
    },
};
use crate::json::{clip, fields::Text};

/// A client's message that was not accepted, with the fields that could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invalid}")]
pub struct BadMessage {
    /// The message's `type`, if it is a type of client messages.
    pub kind: Option<&'static str>,
    /// The message's `requestId`, if it is valid: an `llm:error` can then refer to it.
    pub request_id: Option<String>,
    /// The fault.
    pub invalid: Box<Invalid>,
}

/// The types of clients' messages (spec, "ClientMessage").
const KINDS: [&str; 6] =
    ["room:create", "room:join", "llm:request", "tui:register", "host:register", "list:rooms"];

impl ClientMessage {
    /// Reads a message. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`BadMessage`], with everything that is wrong.
    pub fn decode(body: &[u8]) -> Result<Self, BadMessage> {
        let raw: Raw<'_> = object(body).map_err(|invalid| BadMessage {
            kind: None,
            request_id: None,
            invalid: Box::new(invalid),
        })?;
        let mut invalid = Invalid::default();
        let kind = raw.kind(&mut invalid);
        let message = kind.map(|kind| raw.message(kind, &mut invalid));
        match (message, invalid.or(())) {
            (Some(message), Ok(())) => Ok(message),
            (_, wrong) => Err(BadMessage {
                kind,
                request_id: raw.readable_id(),
                invalid: Box::new(wrong.err().unwrap_or_default()),
            }),
        }
    }
}

/// A raw message: the fields of all types together.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Raw<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    password: Option<&'a RawValue>,
    defaults: Option<&'a RawValue>,
    public: Option<&'a RawValue>,
    expires_secs: Option<&'a RawValue>,
    code: Option<&'a RawValue>,
    participant: Option<&'a RawValue>,
    request_id: Option<&'a RawValue>,
    target_id: Option<&'a RawValue>,
    prompt: Option<&'a RawValue>,
    options: Option<&'a RawValue>,
    room_code: Option<&'a RawValue>,
    room_id: Option<&'a RawValue>,
}

impl Raw<'_> {
    fn kind(&self, invalid: &mut Invalid) -> Option<&'static str> {
        let Text(kind) = invalid.required("type", self.kind)?;
        let known = KINDS.into_iter().find(|known| *known == kind);
        if known.is_none() {
            let kind = clip(&kind, 64);
            let all = KINDS.join(", ");
            invalid.add("type", &format!("{kind:?} is no message of a client; they are {all}"));
        }
        known
    }

    fn message(&self, kind: &'static str, invalid: &mut Invalid) -> ClientMessage {
        match kind {
            "room:create" => {
                let Self { name, password, defaults, public, expires_secs, .. } = *self;
                let room = RawRoom { name, password, defaults, public, expires_secs };
                ClientMessage::RoomCreate(room.read(invalid))
            }
            "room:join" => ClientMessage::RoomJoin(self.room_join(invalid)),
            "llm:request" => ClientMessage::LlmRequest(self.llm_request(invalid)),
            "tui:register" => {
                ClientMessage::TuiRegister(TuiRegister { room_code: self.room_code(invalid) })
            }
            "host:register" => {
                let room_id = invalid.text("roomId", self.room_id, |text| line(text, MAX_CODE));
                ClientMessage::HostRegister(HostRegister { room_id })
            }
            _ => ClientMessage::ListRooms(ListRooms {}),
        }
    }

    fn room_join(&self, invalid: &mut Invalid) -> RoomJoin {
        RoomJoin {
            code: invalid.text("code", self.code, |text| line(text, MAX_CODE)),
            participant: joining(self.participant(invalid), invalid),
            password: password(self.password, invalid).filter(|text| !text.is_empty()),
        }
    }

    fn participant(&self, invalid: &mut Invalid) -> Option<RawJoining<'_>> {
        if self.participant.is_none() {
            invalid.required.push("participant".to_owned());
        }
        invalid.optional_object("participant", self.participant)
    }

    fn llm_request(&self, invalid: &mut Invalid) -> LlmRequest {
        let options: Option<GenerationConfig> = invalid.optional_object("options", self.options);
        if let Some(options) = &options {
            options.check_at("options.", invalid);
        }
        LlmRequest {
            request_id: invalid.text("requestId", self.request_id, request_id),
            target_id: invalid.text("targetId", self.target_id, |text| line(text, MAX_SELECTOR)),
            prompt: invalid.text("prompt", self.prompt, |_| Ok(())),
            options,
            room_code: self.room_code(invalid),
        }
    }

    fn room_code(&self, invalid: &mut Invalid) -> Option<String> {
        invalid.text_if("roomCode", self.room_code, |text| line(text, MAX_CODE))
    }

    /// The request's id, if an error can refer to it.
    fn readable_id(&self) -> Option<String> {
        let id: String = serde_json::from_str(self.request_id?.get()).ok()?;
        request_id(&id).is_ok().then_some(id)
    }
}

fn request_id(text: &str) -> Result<(), limits::Unfit> {
    line(text, MAX_REQUEST_ID)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct RawJoining<'a> {
    id: Option<&'a RawValue>,
    nickname: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    endpoint: Option<&'a RawValue>,
    specs: Option<&'a RawValue>,
    config: Option<&'a RawValue>,
    max_concurrent: Option<&'a RawValue>,
}

/// The joining participant. A missing one was already reported.
fn joining(raw: Option<RawJoining<'_>>, invalid: &mut Invalid) -> JoiningParticipant {
    let Some(raw) = raw else { return JoiningParticipant::default() };
    let path = "participant.maxConcurrent";
    JoiningParticipant {
        id: invalid.text("participant.id", raw.id, limits::id),
        nickname: invalid.text("participant.nickname", raw.nickname, limits::nickname),
        model: invalid.text("participant.model", raw.model, limits::model),
        endpoint: invalid.text("participant.endpoint", raw.endpoint, limits::endpoint),
        specs: specs("participant.specs", raw.specs, invalid).unwrap_or_default(),
        config: config("participant.config", raw.config, invalid).unwrap_or_default(),
        max_concurrent: max_concurrent(path, raw.max_concurrent, invalid),
    }
}

impl ServerMessage {
    /// Reads a message of a server, from an answer or from the `data` of an unnamed event.
    ///
    /// # Errors
    /// [`Invalid`] when it is not a message, or has an unknown type.
    pub fn decode(body: &[u8]) -> Result<Self, Invalid> {
        object(body)
    }
}

impl EventEnvelope {
    /// Reads the `data` line of a named event.
    ///
    /// # Errors
    /// [`Invalid`] when it is not an event, or has an unknown type.
    pub fn decode(data: &[u8]) -> Result<Self, Invalid> {
        object(data)
    }
}
