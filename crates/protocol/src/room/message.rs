//! The spec's messages: six of clients, eleven of servers (spec, "Message Unions").
//!
//! Fields marked as ours are additions that a reader of the spec's own ignores.

use serde::{Deserialize, Serialize};

use super::{
    config::{GenerationConfig, RuntimeConfig},
    plane::CreateRoom,
    types::{LlmMetrics, MachineSpecs, ParticipantInfo, RoomInfo, RoomSummary},
};

/// A message from a client to a server (spec, "ClientMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ClientMessage {
    /// Make a room (spec, "RoomCreateMessage"); all but the name is ours.
    #[serde(rename = "room:create")]
    RoomCreate(CreateRoom),
    /// Join a room with a model.
    #[serde(rename = "room:join")]
    RoomJoin(RoomJoin),
    /// Ask a model.
    #[serde(rename = "llm:request")]
    LlmRequest(LlmRequest),
    /// Request the state of all rooms, for a terminal interface.
    #[serde(rename = "tui:register")]
    TuiRegister(TuiRegister),
    /// Request the state of one room.
    #[serde(rename = "host:register")]
    HostRegister(HostRegister),
    /// Request the list of rooms.
    #[serde(rename = "list:rooms")]
    ListRooms(ListRooms),
}

/// Join a room with a model (spec, "RoomJoinMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoomJoin {
    /// The room's code.
    pub code: String,
    /// The participant.
    pub participant: JoiningParticipant,
    /// The room's password. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// A participant that joins a room.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoiningParticipant {
    /// Its id, which it chooses.
    pub id: String,
    /// Its name, for people.
    pub nickname: String,
    /// Its model.
    pub model: String,
    /// Where the server reaches its backend; a URL.
    pub endpoint: String,
    /// Its machine.
    #[serde(default)]
    pub specs: MachineSpecs,
    /// The default generation parameters of its model.
    #[serde(default)]
    pub config: RuntimeConfig,
    /// How many requests it takes at once. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
}

/// Ask a model (spec, "LlmRequestMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmRequest {
    /// The id that identifies its answer.
    pub request_id: String,
    /// A participant's id, or a pattern such as `model:llama3` or `*`.
    pub target_id: String,
    /// The prompt.
    pub prompt: String,
    /// In place of the participant's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<GenerationConfig>,
    /// The room, if the path does not name it. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_code: Option<String>,
}

/// A request for the state of all rooms, for a terminal interface (spec, "TuiRegisterMessage").
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TuiRegister {
    /// The only room to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_code: Option<String>,
}

/// A request for the state of one room (spec, "HostRegisterMessage").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRegister {
    /// The room's id.
    pub room_id: String,
}

/// A request for the list of rooms (spec, "ListRoomsMessage").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRooms {}

/// A message from a server to clients (spec, "ServerMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ServerMessage {
    /// The room is made.
    #[serde(rename = "room:created")]
    RoomCreated(RoomCreated),
    /// You are in the room.
    #[serde(rename = "room:joined")]
    RoomJoined(RoomJoined),
    /// A participant joined.
    #[serde(rename = "room:participant-joined")]
    ParticipantJoined(ParticipantJoined),
    /// A participant left.
    #[serde(rename = "room:participant-left")]
    ParticipantLeft(ParticipantLeft),
    /// It was not done.
    #[serde(rename = "room:error")]
    RoomError(RoomErrorMessage),
    /// A piece of an answer.
    #[serde(rename = "llm:token")]
    LlmToken(LlmToken),
    /// An answer is whole.
    #[serde(rename = "llm:complete")]
    LlmComplete(LlmComplete),
    /// An answer failed, before or after it began.
    #[serde(rename = "llm:error")]
    LlmError(LlmError),
    /// The rooms and participants, for a terminal interface.
    #[serde(rename = "tui:registered")]
    TuiRegistered(TuiRegistered),
    /// One room and its participants.
    #[serde(rename = "host:registered")]
    HostRegistered(HostRegistered),
    /// The list of rooms.
    #[serde(rename = "list:rooms-response")]
    ListRooms(ListRoomsResponse),
}

/// The room is made (spec, "RoomCreatedMessage").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomCreated {
    /// The spoken code.
    pub code: String,
    /// The room's id.
    pub room_id: String,
    /// The six-character code of the same room. Ours.
    #[serde(default)]
    pub short_code: String,
    /// The host's token, which only this message has. Ours.
    #[serde(default)]
    pub host_token: String,
}

/// You are in the room (spec, "RoomJoinedMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomJoined {
    /// The room's id.
    pub room_id: String,
    /// Its participants, the new one included.
    pub participants: Vec<ParticipantInfo>,
    /// The participant's session token, for its later requests. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
}

/// A participant joined (spec, "RoomParticipantJoinedMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParticipantJoined {
    /// Its participant.
    pub participant: ParticipantInfo,
}

/// A participant left (spec, "RoomParticipantLeftMessage").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantLeft {
    /// Its participant id.
    pub participant_id: String,
}

/// It was not done (spec, "RoomErrorMessage").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomErrorMessage {
    /// Why.
    pub error: String,
}

/// A piece of an answer (spec, "LlmTokenMessage").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmToken {
    /// The request's own id.
    pub request_id: String,
    /// The participant that answers.
    pub participant_id: String,
    /// The text.
    pub token: String,
    /// Counted from 0.
    pub seq: u64,
}

/// An answer is whole (spec, "LlmCompleteMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmComplete {
    /// The request's own id.
    pub request_id: String,
    /// The participant that answered.
    pub participant_id: String,
    /// The metrics of the answer.
    pub metrics: LlmMetrics,
}

/// An answer failed, before or after it began (spec, "LlmErrorMessage").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmError {
    /// The request's own id.
    pub request_id: String,
    /// The participant that failed; empty if none had it.
    pub participant_id: String,
    /// Why.
    pub error: String,
}

/// The rooms and participants, for a terminal interface (spec, "TuiRegisteredMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuiRegistered {
    /// The rooms.
    pub rooms: Vec<RoomInfo>,
    /// Their participants, all together.
    pub participants: Vec<ParticipantInfo>,
}

/// One room and its participants (spec, "HostRegisteredMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRegistered {
    /// The room.
    pub room: RoomInfo,
    /// Its participants.
    pub participants: Vec<ParticipantInfo>,
}

/// The list of rooms (spec, "ListRoomsResponseMessage").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListRoomsResponse {
    /// The rooms, with how many participants each has.
    pub rooms: Vec<RoomSummary>,
}

impl ClientMessage {
    /// The message as JSON.
    pub fn encode(&self) -> String {
        crate::json::write(self)
    }
}

impl ServerMessage {
    /// The message as JSON.
    pub fn encode(&self) -> String {
        crate::json::write(self)
    }
}
