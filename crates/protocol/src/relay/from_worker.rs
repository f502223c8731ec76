//! The bodies of a worker's messages to a server (relay specification, "Message Type Summary").

use std::collections::BTreeMap;

use base::{Endpoints, FactsByModel};
use serde::{Deserialize, Serialize};

use super::{endpoints, heads::Headers};
use crate::{
    json::lenient::or_default,
    room::{MachineSpecs, RuntimeConfig},
    usage::Usage,
};

/// `register`: a worker introduces itself. See [`Register::normalised`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Register {
    /// The worker's name, for people; need not be unique.
    pub worker_name: String,
    /// Its models; `*` means every model.
    pub models: Vec<String>,
    /// How many requests it serves at once, as sent; 0 counts as 1.
    pub max_concurrent: u32,
    /// The protocol version it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// How many requests it is serving already, from any server.
    #[serde(default, deserialize_with = "or_default")]
    pub current_load: u32,
    /// The endpoints of its backend; absent if unknown. Not part of the specification.
    #[serde(default, with = "endpoints", skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// Its participant in the room that it joins. Not part of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<Box<WorkerParticipant>>,
    /// A random name of the link, the same each time that it is dialled: the server closes an older
    /// link of this name. Sent on binary links only. Not part of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Whether it acknowledges jobs if the server wants that
    /// ([`WorkerFrame::Accepted`](super::WorkerFrame::Accepted)). Not part of the specification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acknowledges: bool,
    /// Whether its backend is a cloud provider, which is used as a last resort. Sent on binary links
    /// only. Not part of the specification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cloud: bool,
    /// Whether it loads and unloads models when it is told
    /// ([`ServerMessage::LoadModel`](super::ServerMessage::LoadModel)). Sent on binary links only. Not
    /// part of the specification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loads_models: bool,
}

/// A worker's participant in a room. Not part of the specification.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerParticipant {
    /// Its id in the room, which it chooses.
    pub id: String,
    /// Its name, for people.
    pub nickname: String,
    /// Its machine.
    #[serde(default)]
    pub specs: MachineSpecs,
    /// The default generation parameters of its models.
    #[serde(default)]
    pub config: RuntimeConfig,
    /// The token from the `register_ack` of an earlier link; a second link of the same id must send
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
}

/// `models_update`: the models offered from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelsUpdate {
    /// All models it offers now.
    pub models: Vec<String>,
    /// How many requests it is serving.
    pub current_load: u32,
    /// The endpoints of its backend now; absent: unchanged. Not part of the specification.
    #[serde(default, with = "endpoints", skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// Whether the list is empty because the backend has no models, rather than being out of reach.
    /// Not part of the specification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub none_left: bool,
    /// The facts that its backend reports about its models. Sent on binary links only. Not part of the
    /// specification.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub facts: FactsByModel,
}

/// `model_done`: how the load or unload of a model went. Not part of the specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDone {
    /// The number from the server's message.
    pub number: u32,
    /// Why it could not be done, for people; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `response_chunk`: bytes of a streamed answer, to be forwarded unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseChunk {
    /// The job.
    pub request_id: String,
    /// The bytes; not necessarily whole events.
    pub chunk: String,
}

/// `response_complete`: the end of an answer, or the whole of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseComplete {
    /// The job.
    pub request_id: String,
    /// The backend's HTTP status.
    pub status_code: u16,
    /// The backend's headers.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Headers::is_empty")]
    pub headers: Headers,
    /// The body; after chunks empty or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Token counts, when the worker knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_counts: Option<TokenCounts>,
}

/// Token counts of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Tokens of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u32>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u32>,
    /// Both together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u32>,
}

impl From<Usage> for TokenCounts {
    fn from(usage: Usage) -> Self {
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let total = usage.prompt_tokens.zip(usage.completion_tokens);
        Self {
            prompt_tokens: usage.prompt_tokens.map(narrow),
            completion_tokens: usage.completion_tokens.map(narrow),
            total_tokens: total
                .map(|(prompt, completion)| narrow(prompt.saturating_add(completion))),
        }
    }
}

impl From<TokenCounts> for Usage {
    fn from(counts: TokenCounts) -> Self {
        Self {
            prompt_tokens: counts.prompt_tokens.map(u64::from),
            completion_tokens: counts.completion_tokens.map(u64::from),
            ..Self::default()
        }
    }
}

/// `pong`: the reply to a ping, or a load report that nobody asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// How many requests it is serving.
    pub current_load: u32,
    /// The ping's timestamp, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_unix_ms: Option<u64>,
}

/// `error`: a request failed at the worker; without a `request_id`, something else did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerError {
    /// The job that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The failure's code.
    pub code: String,
    /// The failure, for people.
    pub message: String,
}
