//! The events of a room, named (`GET /v1/rooms/{code}/events`).
//!
//! Stock parsers are strict: `event: NAME`, LF, `data: ` and one line of JSON, LF, LF, in one piece.
//! Comments are ignored by all of them.

use serde::{Deserialize, Serialize};

use super::types::{AnswerMetrics, ParticipantInfo, Protocol, RoomSummary};

/// Something that happened in a room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum RoomEvent {
    /// The first of every stream.
    #[serde(rename = "connected")]
    Connected(Connected),
    /// The room was made, or its name, password or defaults were changed.
    #[serde(rename = "room.created")]
    RoomCreated(RoomSummary),
    /// The room was closed; the last event of its streams. Ours.
    #[serde(rename = "room.closed")]
    RoomClosed(RoomClosed),
    /// A participant joined.
    #[serde(rename = "participant.joined")]
    ParticipantJoined(ParticipantInfo),
    /// A participant changed, connected or disconnected.
    #[serde(rename = "participant.updated")]
    ParticipantUpdated(ParticipantInfo),
    /// A participant left.
    #[serde(rename = "participant.left")]
    ParticipantLeft(ParticipantRef),
    /// A participant was silent for too long.
    #[serde(rename = "participant.offline")]
    ParticipantOffline(ParticipantRef),
    /// A request was given to a participant.
    #[serde(rename = "llm.request")]
    LlmRequest(LlmStarted),
    /// A piece of an answer to an `llm:request` of the spec. Ours: only for clients that ask for
    /// it.
    #[serde(rename = "llm.token")]
    LlmToken(super::message::LlmToken),
    /// An answer is complete, with any status.
    #[serde(rename = "llm.complete")]
    LlmComplete(LlmDone),
    /// An answer failed, before or after it began.
    #[serde(rename = "llm.error")]
    LlmError(LlmFailed),
}

/// The first event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    /// The stream's own id.
    pub client_id: String,
}

/// Why a room was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomClosed {
    /// The reason, as text.
    pub reason: String,
}

/// A participant, by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantRef {
    /// The id.
    pub participant_id: String,
}

/// A request was given to a participant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmStarted {
    /// The request's id.
    pub request_id: String,
    /// The participant that has it.
    pub participant_id: String,
    /// The selector, as the client wrote it.
    pub model: String,
    /// Its API.
    pub protocol: Protocol,
}

/// An answer is whole. Its model is not that of [`LlmStarted`], but the one that answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmDone {
    /// The request's id.
    pub request_id: String,
    /// The participant that answered.
    pub participant_id: String,
    /// The participant's model.
    pub model: String,
    /// Its API.
    pub protocol: Protocol,
    /// The metrics of the answer.
    pub metrics: AnswerMetrics,
}

/// An answer that failed, before or after it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmFailed {
    /// The request's id.
    pub request_id: String,
    /// The participant that had it.
    pub participant_id: String,
    /// Its name, for people.
    pub nickname: String,
    /// The URL of its backend, as it reports it.
    pub endpoint: String,
    /// Its model.
    pub model: String,
    /// Its API.
    pub protocol: Protocol,
    /// Whether it failed before or after its answer began.
    pub stage: Stage,
    /// Why.
    pub error: String,
}

/// When a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Before its answer began.
    Dispatch,
    /// In the middle of its answer.
    Stream,
}

/// An event, as in its `data` line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventEnvelope {
    /// The event: `type` and `data` of the JSON.
    #[serde(flatten)]
    pub event: RoomEvent,
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// The room's six-character code.
    #[serde(rename = "roomCode")]
    pub room_code: String,
}

impl RoomEvent {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Connected(_) => "connected",
            Self::RoomCreated(_) => "room.created",
            Self::RoomClosed(_) => "room.closed",
            Self::ParticipantJoined(_) => "participant.joined",
            Self::ParticipantUpdated(_) => "participant.updated",
            Self::ParticipantLeft(_) => "participant.left",
            Self::ParticipantOffline(_) => "participant.offline",
            Self::LlmRequest(_) => "llm.request",
            Self::LlmToken(_) => "llm.token",
            Self::LlmComplete(_) => "llm.complete",
            Self::LlmError(_) => "llm.error",
        }
    }

    /// The whole frame of an event, with its `id:` line for a watcher that asked for ids. The JSON has `type`,
    /// `timestamp`, `roomCode`, `data`, in this order.
    pub fn frame(&self, id: Option<u64>, timestamp: u64, room_code: &str) -> String {
        let data = match self {
            Self::Connected(data) => crate::json::write(data),
            Self::RoomCreated(data) => crate::json::write(data),
            Self::RoomClosed(data) => crate::json::write(data),
            Self::ParticipantJoined(data) | Self::ParticipantUpdated(data) => {
                crate::json::write(data)
            }
            Self::ParticipantLeft(data) | Self::ParticipantOffline(data) => {
                crate::json::write(data)
            }
            Self::LlmRequest(data) => crate::json::write(data),
            Self::LlmToken(data) => crate::json::write(data),
            Self::LlmComplete(data) => crate::json::write(data),
            Self::LlmError(data) => crate::json::write(data),
        };
        let name = self.name();
        let code = crate::json::write(&room_code);
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        format!(
            "{id}event: {name}\ndata: {{\"type\":\"{name}\",\"timestamp\":{timestamp},\
             \"roomCode\":{code},\"data\":{data}}}\n\n"
        )
    }
}
