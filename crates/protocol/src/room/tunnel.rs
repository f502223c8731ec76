//! A participant's WebSocket: JSON text frames, answers in base64.
//!
//! Stock participants have no message for cancelling: the rest of an abandoned answer is ignored. A
//! participant that announces support for such a message when its tunnel opens is sent one. The
//! error of an unreadable frame names its request if possible, so that only that request fails.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::chunk;
use crate::relay::{
    Problem,
    decode::{body, kind_of},
};

/// A frame that could not be read, with as much of it as could.
pub use crate::relay::MessageError as BadFrame;

/// A message from a server to a participant.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type")]
pub enum ToParticipant<'a> {
    /// Ask the backend.
    #[serde(rename = "tunnel.request")]
    Request(TunnelRequest<'a>),
    /// The reply to a ping.
    #[serde(rename = "tunnel.pong")]
    Pong(Tick),
    /// The answer is no longer needed: stop, and confirm with an end or an error. Ours, and only
    /// for participants that have announced [`CANCELS`].
    #[serde(rename = "tunnel.cancel")]
    Cancel(TunnelCancel),
}

/// A Warren participant puts this into its tunnel's query, as `cancels=true`, if the server is a
/// Warren. It knows this by its session token, which no stock server gives.
pub const CANCELS: &str = "cancels";

/// An answer is no longer needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelCancel {
    /// To this request.
    pub request_id: String,
}

/// Ask the backend.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelRequest<'a> {
    /// The request's id on this tunnel.
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// Its name (see [`operation`]); participants only read the path.
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
    pub headers: BTreeMap<String, String>,
    /// Its body, as raw JSON.
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

/// A message from a participant to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// The answer failed, before or after it began.
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
    pub headers: BTreeMap<String, String>,
}

/// Bytes of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseChunk {
    /// Of this request.
    pub request_id: String,
    /// The bytes, which are base64 in the frame; they may begin and end anywhere.
    #[serde(with = "chunk")]
    pub chunk: Bytes,
}

/// An answer is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseEnd {
    /// Of this request.
    pub request_id: String,
}

/// An answer that failed, before or after it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseError {
    /// Of this request.
    pub request_id: String,
    /// The stage at which it failed; stock participants send `proxy`.
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

/// The operation's name for this method and path. Stock participants define the names for Responses
/// and Chat Completions, but read none; the other names follow the same pattern.
pub fn operation(method: &str, path: &str) -> &'static str {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    match (method, path) {
        (_, "/v1/chat/completions") => "chat.completions.create",
        (_, "/v1/completions") => "completions.create",
        (_, "/v1/embeddings") => "embeddings.create",
        (_, "/v1/responses") => "responses.create",
        (_, "/v1/messages") => "messages.create",
        (_, "/v1/messages/count_tokens") => "messages.count_tokens",
        (_, "/v1/models") => "models.list",
        (method, path) if path.starts_with("/v1/responses/") => of_response(method, path),
        _ => "request",
    }
}

fn of_response(method: &str, path: &str) -> &'static str {
    match (method, path.rsplit_once('/').map(|(_, last)| last)) {
        ("POST", Some("cancel")) => "responses.cancel",
        ("GET", Some("input_items")) => "responses.input_items",
        ("DELETE", _) => "responses.delete",
        _ => "responses.get",
    }
}

impl<'a> ToParticipant<'a> {
    /// The frame's text. A request's body is copied into it once, unchanged.
    pub fn encode(&self) -> String {
        const BESIDE_THE_BODY: usize = 512;
        let body = match self {
            Self::Request(request) => request.body.map_or(0, |body| body.get().len()),
            Self::Pong(_) | Self::Cancel(_) => 0,
        };
        crate::json::write_into(String::with_capacity(body + BESIDE_THE_BODY), self)
    }

    /// Reads a frame. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`BadFrame`] when it is not a message to a participant.
    pub fn decode(text: &'a str) -> Result<Self, BadFrame> {
        match &*kind_of(text)? {
            "tunnel.request" => body(text).map(Self::Request),
            "tunnel.pong" => body(text).map(Self::Pong),
            "tunnel.cancel" => body(text).map(Self::Cancel),
            _ => Err(BadFrame::new(text, Problem::UnknownType)),
        }
    }
}

impl FromParticipant {
    /// The frame's text.
    pub fn encode(&self) -> String {
        crate::json::write(self)
    }

    /// Reads a frame. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`BadFrame`] when it is not a message of a participant, or a chunk is not base64.
    pub fn decode(text: &str) -> Result<Self, BadFrame> {
        match &*kind_of(text)? {
            "tunnel.response.chunk" => body(text).map(Self::Chunk),
            "tunnel.response.start" => body(text).map(Self::Start),
            "tunnel.response.end" => body(text).map(Self::End),
            "tunnel.response.error" => body(text).map(Self::Error),
            "tunnel.ping" => body(text).map(Self::Ping),
            _ => Err(BadFrame::new(text, Problem::UnknownType)),
        }
    }
}
