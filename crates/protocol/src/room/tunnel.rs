//! A participant's WebSocket: JSON text frames, answers in base64.
//!
//! There is no word for cancelling: what still comes for a request that nobody waits for is ignored.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a server says to a participant.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ToParticipant<'a> {
    /// Ask the backend.
    #[serde(rename = "tunnel.request", borrow)]
    Request(TunnelRequest<'a>),
    /// The reply to a ping.
    #[serde(rename = "tunnel.pong")]
    Pong(Tick),
}

/// Ask the backend.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelRequest<'a> {
    /// The request's id on this tunnel.
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// Its name, such as `chat.completions.create`; participants look at the path alone.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// `GET`, `POST` or `DELETE`.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// The path, such as `/v1/chat/completions`, to be put after the backend's URL.
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    /// Its headers.
    #[serde(default)]
    pub headers: std::collections::BTreeMap<String, String>,
    /// Its body: JSON, as it is.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub body: Option<&'a RawValue>,
    /// Whether a stream is asked for.
    #[serde(default)]
    pub stream: bool,
}

/// A ping, or its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// When it was sent, in milliseconds since 1970.
    pub timestamp: u64,
}

/// What a participant says to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum FromParticipant {
    /// The head of an answer.
    #[serde(rename = "tunnel.response.start")]
    Start(ResponseStart),
    /// Bytes of an answer.
    #[serde(rename = "tunnel.response.chunk")]
    Chunk(ResponseChunk),
    /// An answer is whole.
    #[serde(rename = "tunnel.response.end")]
    End(ResponseEnd),
    /// There is no answer, or not a whole one.
    #[serde(rename = "tunnel.response.error")]
    Error(ResponseError),
    /// A sign of life.
    #[serde(rename = "tunnel.ping")]
    Ping(Tick),
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseStart {
    /// Of this request.
    pub request_id: String,
    /// The HTTP status.
    pub status: u16,
    /// The HTTP headers.
    #[serde(default)]
    pub headers: std::collections::BTreeMap<String, String>,
}

/// Bytes of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseChunk {
    /// Of this request.
    pub request_id: String,
    /// The bytes in base64; they may begin and end anywhere.
    pub chunk: String,
}

/// An answer is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseEnd {
    /// Of this request.
    pub request_id: String,
}

/// There is no answer, or not a whole one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseError {
    /// Of this request.
    pub request_id: String,
    /// Where it failed; stock participants say `proxy`.
    #[serde(default)]
    pub stage: String,
    /// Why.
    #[serde(default)]
    pub message: String,
}

/// Why a server closes a tunnel.
pub mod close {
    /// Another tunnel of the same participant took its place.
    pub const SUPERSEDED: (u16, &str) = (1000, "superseded by a newer tunnel");
    /// The server, or the room, is closing.
    pub const CLOSING: (u16, &str) = (1001, "the server is closing");
    /// No ping for 30 s.
    pub const PING_LAPSE: (u16, &str) = (4001, "no ping for 30 s");
    /// The participant broke the protocol.
    pub const PROTOCOL_ERROR: (u16, &str) = (1002, "protocol error");
    /// The participant was removed.
    pub const REMOVED: (u16, &str) = (1008, "the participant was removed");
}

impl ToParticipant<'_> {
    /// The frame's text.
    pub fn encode(&self) -> String {
        crate::json::write(self)
    }
}

impl FromParticipant {
    /// The frame's text.
    pub fn encode(&self) -> String {
        crate::json::write(self)
    }
}
