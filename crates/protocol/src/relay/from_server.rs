//! The bodies of a server's messages to a worker (relay specification, "Message Type Summary").

use std::fmt;

use base::CancelReason;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        IntoDeserializer,
        value::{self, StrDeserializer},
    },
};

use super::heads::Headers;
use crate::json::lenient::or_default;

/// `register_ack`: the server's answer to a registration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterAck {
    /// The server's name for this connection.
    pub worker_id: String,
    /// The models that the server accepted.
    pub models: Vec<String>,
    /// The server's warnings about dropped or odd values, for people.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The version that the worker sent, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The code of the room that it is in now. Like the next two fields, not part of the
    /// specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// Its id in the room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant_id: Option<String>,
    /// The token that a second link of the same participant must present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    /// Whether the server wants jobs acknowledged. Not part of the specification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acknowledge: bool,
}

/// `request`: one inference request. In frames, a [`RequestHead`](super::RequestHead) goes before the body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The job, as the server names it.
    pub request_id: String,
    /// The model asked for.
    pub model: String,
    /// The path, with its query, below the backend's base address.
    pub endpoint_path: String,
    /// Whether the client asked for a stream.
    pub is_streaming: bool,
    /// The client's body, unchanged.
    pub body: String,
    /// The headers to pass on.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Headers::is_empty")]
    pub headers: Headers,
}

/// `cancel`: stop serving a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The job to stop.
    pub request_id: String,
    /// Why.
    pub reason: CancelCause,
}

/// The reason in a `cancel`: one of ours, or any other as text.
///
/// On the wire it is a bare word, or `{"other":"text"}`. An unknown bare word is read as other text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CancelCause {
    /// One of ours.
    Known(CancelReason),
    /// Any other reason.
    Other {
        /// As text.
        other: String,
    },
}

impl fmt::Display for CancelCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(reason) => reason.fmt(f),
            Self::Other { other } => f.write_str(other),
        }
    }
}

impl<'de> Deserialize<'de> for CancelCause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a reason: a word or {\"other\": text}")]
        enum Wire {
            Word(String),
            Tagged { other: String },
        }
        Ok(match Wire::deserialize(deserializer)? {
            Wire::Word(other) => {
                let word: StrDeserializer<'_, value::Error> = other.as_str().into_deserializer();
                CancelReason::deserialize(word).map_or(Self::Other { other }, Self::Known)
            }
            Wire::Tagged { other } => Self::Other { other },
        })
    }
}

/// `ping`: the server's heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// The server's clock, in milliseconds since 1970. A stock server sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_unix_ms: Option<u64>,
}

/// `graceful_shutdown`: finish the jobs in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GracefulShutdown {
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds until the server closes the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_timeout_secs: Option<u64>,
}

/// `models_refresh`: report the models again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelsRefresh {
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `load_model` and `unload_model`: load a model, or end the program that serves it. Sent only to a
/// worker with [`loads_models`](super::Register::loads_models). Not part of the specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelMessage {
    /// The number of this message on its link, for the answer.
    pub number: u32,
    /// The model, by the name under which it is offered.
    pub model: String,
}
