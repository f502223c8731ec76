//! The bodies of the HTTP API that stock clients use (`/v1/rooms…`), in their envelopes.

use serde::{Deserialize, Serialize};

use super::{
    config::RuntimeConfig,
    types::{Capabilities, MachineSpecs, ParticipantInfo, RoomSummary, Status},
};

/// A good answer: `{"data": …, "meta": {"requestId": …}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// The data.
    pub data: T,
    /// About the answer.
    pub meta: Meta,
}

/// About an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The id of the request.
    pub request_id: String,
}

/// A bad answer: `{"error": …, "meta": …}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorEnvelope {
    /// The error.
    pub error: PlaneError,
    /// About the answer.
    #[serde(default)]
    pub meta: Meta,
}

/// The error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlaneError {
    /// Its kind.
    pub code: ErrorCode,
    /// The error's message.
    pub message: String,
    /// A hint for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The invalid fields and their faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

/// The kinds of errors. Stock servers declare more than they send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// 400: the request is invalid. Also 404 for an unknown path, and 401 for a bad tunnel token.
    InvalidRequest,
    /// 401: the password is missing or wrong.
    InvalidPassword,
    /// 404.
    RoomNotFound,
    /// 404.
    ParticipantNotFound,
    /// 409: another participant is connected under this id.
    ParticipantConflict,
    /// 409.
    ParticipantBusy,
    /// 503.
    ParticipantTunnelNotConnected,
    /// 404.
    ModelNotFound,
    /// 400 or 403: the server does not call this endpoint.
    EndpointNotReachable,
    /// 500, and 400 for a tunnel that is no upgrade.
    InternalError,
    /// 401 or 403: a key is needed, or the host's token. Ours.
    Unauthorized,
    /// 429: too many tries, rooms or participants. Ours.
    TooMany,
    /// A code that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Body of `POST /v1/rooms`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateRoom {
    /// Its name.
    pub name: String,
    /// Its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The default generation parameters of its participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<RuntimeConfig>,
    /// Whether it is listed publicly. Ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public: bool,
    /// After how many seconds without use it ends. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_secs: Option<u64>,
}

/// Answer of `POST /v1/rooms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedRoom {
    /// The room.
    pub room: RoomSummary,
    /// The id of its maker. Means nothing.
    pub host_id: String,
    /// The host's token, which only this answer has. Ours; stock servers have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_token: Option<String>,
}

/// Body of `PATCH /v1/rooms/{code}`. Ours. Absent fields stay; an empty password removes the
/// password.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeRoom {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The default generation parameters of its participants; replaces all earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<RuntimeConfig>,
}

/// Body of `PUT /v1/rooms/{code}/participants/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PutParticipant {
    /// Its name, for people.
    pub nickname: String,
    /// Its model.
    pub model: String,
    /// The URL of its backend, as the participant sees it. It is never called.
    pub endpoint: String,
    /// The room's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specs: Option<MachineSpecs>,
    /// The default generation parameters of its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<RuntimeConfig>,
    /// The endpoints of its backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// How many requests it takes at once; absent: one. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// The session token, to take over this id. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
}

/// Answer of `PUT /v1/rooms/{code}/participants/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PutParticipantAnswer {
    /// The participant.
    pub participant: ParticipantInfo,
    /// The room's id.
    pub room_id: String,
    /// Where its tunnel is opened.
    pub tunnel: TunnelPlace,
    /// The participant's session token, for its later requests. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
}

/// Where a participant's tunnel is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelPlace {
    /// Good once, within 60 s, as `?token=`.
    pub token: String,
    /// Absolute, `ws://` or `wss://`, without the token.
    pub url: String,
}

/// Answer of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatAnswer {
    /// Always `true`.
    pub success: bool,
    /// Whether the participant can be given requests.
    pub status: Status,
    /// The time of its last sign of life: now.
    pub last_seen: u64,
}

/// Answer of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// Always `true`.
    pub success: bool,
}

/// Answer of `GET /v1/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneHealth {
    /// `ok`.
    pub status: String,
    /// Now, in milliseconds since 1970.
    pub timestamp: u64,
}
