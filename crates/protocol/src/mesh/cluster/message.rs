//! Every message between peers, with its fields.
//!
//! Missing fields get a default wherever the message can be understood without them. The additions
//! of stock peers to the spec are included (`code`, `tokensOut`, …).

use base::Thermal;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::warren::{
    InferenceCancel, ModelList, ModelListRequest, ModelManifest, ModelManifestRequest,
    ModelPieceRequest, ModelTransferError, ModelTreeRequest, WarrenHello,
};
use crate::mesh::{
    date::AppleTime,
    device::{DeviceInfo, device_id, no_id},
    lenient,
    wire_id::WireId,
};

/// A message.
#[derive(Debug, Clone)]
pub enum ClusterMessage {
    /// The greeting of the node that opens a link.
    Hello(Box<Hello>),
    /// The answer to a greeting, with the same fields.
    HelloAck(Box<Hello>),
    /// The condition of a peer.
    Heartbeat(Box<Heartbeat>),
    /// The same facts of the node that received the heartbeat.
    HeartbeatAck(Box<Heartbeat>),
    /// A request to answer.
    InferenceRequest(InferenceRequest),
    /// A piece of an answer.
    InferenceChunk(InferenceChunk),
    /// The answer is complete.
    InferenceComplete(InferenceComplete),
    /// The answer failed, before or after it began.
    InferenceError(InferenceError),
    /// A query whether a model is available.
    ModelQuery(ModelQuery),
    /// The answer to such a query.
    ModelQueryResponse(ModelQueryResponse),
    /// A request for a model's files.
    ModelTransferRequest(ModelTransferRequest),
    /// A piece of a file.
    ModelTransferChunk(ModelTransferChunk),
    /// All files were sent.
    ModelTransferComplete(ModelTransferComplete),
    /// A request to load a model (stock peers know it, none sends it).
    LoadModel(LoadModel),
    /// The model was loaded.
    ModelLoaded(ModelLoaded),
    /// The model was not loaded.
    ModelLoadError(ModelLoadError),
    /// Between Warrens: stop answering.
    InferenceCancel(InferenceCancel),
    /// Between Warrens: a request for a model's manifest.
    ModelManifestRequest(ModelManifestRequest),
    /// Between Warrens: the manifest, with the model's files.
    ModelManifest(ModelManifest),
    /// Between Warrens: a request for the hash tree of one file.
    ModelTreeRequest(ModelTreeRequest),
    /// Between Warrens: a request for some pieces of one file.
    ModelPieceRequest(ModelPieceRequest),
    /// Between Warrens: a part of a model is not available.
    ModelTransferError(ModelTransferError),
    /// Between Warrens: asks which models the other node passes on.
    ModelListRequest(ModelListRequest),
    /// Between Warrens: the models that a node passes on.
    ModelList(ModelList),
}

/// A peer's identity and facts (spec, "hello" and "helloAck").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The device.
    pub device_info: DeviceInfo,
    /// 1.
    #[serde(default = "first", deserialize_with = "version")]
    pub protocol_version: u32,
    /// Lower-case hex of the passcode's SHA-256, from stock peers.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub cluster_passcode_hash: Option<String>,
    /// The models that it serves now.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub loaded_models: Vec<String>,
    /// The owner of the device.
    #[serde(rename = "ownerUserID")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub owner_user_id: Option<String>,
    /// A Warren's own fields; stock peers ignore them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::any")]
    pub warren: Option<WarrenHello>,
    /// All other fields.
    #[serde(flatten, deserialize_with = "other_fields")]
    pub extra: Map<String, Value>,
}

/// All fields that the type does not name. `_0` is left out: it belongs to the wrapped form, and would make a
/// flat message look wrapped.
fn other_fields<'de, D: Deserializer<'de>>(fields: D) -> Result<Map<String, Value>, D::Error> {
    let mut other = Map::deserialize(fields)?;
    other.remove("_0");
    Ok(other)
}

fn first() -> u32 {
    1
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(lenient::opt::<_, u32>(deserializer)?.unwrap_or_else(first))
}

/// An unknown level counts as nominal.
fn thermal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Thermal, D::Error> {
    Ok(match lenient::value::<_, String>(deserializer)?.as_str() {
        "fair" => Thermal::Fair,
        "serious" => Thermal::Serious,
        "critical" => Thermal::Critical,
        _ => Thermal::Nominal,
    })
}

/// How a peer is doing (spec, "heartbeat" and "heartbeatAck").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// The id of the device. Stock nodes send another one here than in their hello.
    #[serde(rename = "deviceID", default = "no_id", deserialize_with = "device_id")]
    pub device_id: WireId,
    /// By its own clock.
    #[serde(default)]
    pub timestamp: AppleTime,
    /// How hot it is.
    #[serde(default, deserialize_with = "thermal")]
    pub thermal_level: Thermal,
    /// From 0, paused, to 100, full speed.
    #[serde(default = "full", deserialize_with = "lenient::percent")]
    pub throttle_level: u8,
    /// The models that it serves now.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub loaded_models: Vec<String>,
    /// Whether it answers anything now.
    #[serde(default, deserialize_with = "lenient::value")]
    pub is_generating: bool,
    /// How many requests wait there.
    #[serde(default, deserialize_with = "lenient::value")]
    pub queue_depth: u32,
    /// Its organisation.
    #[serde(rename = "organizationID")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub organization_id: Option<String>,
    /// Its owner.
    #[serde(rename = "ownerUserID")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub owner_user_id: Option<String>,
    /// Its measured tokens a second.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub ewma_tokens_per_second: Option<f64>,
    /// The number of requests that it takes at once. Warrens send it here, stock peers in their
    /// capabilities.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub max_concurrent_requests: Option<u32>,
    /// All other fields.
    #[serde(flatten, deserialize_with = "other_fields")]
    pub extra: Map<String, Value>,
}

fn full() -> u8 {
    100
}

/// A request (spec, "inferenceRequest").
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InferenceRequest {
    /// The id of the request on this link.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// The unchanged body of a Chat Completions request: an object.
    #[serde(deserialize_with = "object")]
    pub request: Box<RawValue>,
    /// Whether chunks are wanted. Stock peers send them anyway, and so do we.
    #[serde(default, deserialize_with = "lenient::value")]
    pub streaming: bool,
    /// The number of links that it has passed, including this one; only Warrens send it. More than
    /// one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub hops: Option<u32>,
    /// Which servers and rooms it has passed ([`crate::via`]). Only Warrens send this.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub via: Option<String>,
}

/// An object as raw JSON.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<RawValue>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let is_object = raw.get().trim_ascii_start().starts_with('{');
    is_object.then_some(raw).ok_or_else(|| serde::de::Error::custom("it has to be an object"))
}

/// A piece of an answer (spec, "inferenceChunk").
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InferenceChunk {
    /// The request.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// An unchanged chunk of Chat Completions: an object.
    #[serde(deserialize_with = "object")]
    pub chunk: Box<RawValue>,
}

/// An answer is complete (spec, "inferenceComplete").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceComplete {
    /// The request.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// Tokens read.
    #[serde(rename = "tokensIn")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub tokens_in: Option<u32>,
    /// Tokens written. Stock nodes count chunks.
    #[serde(rename = "tokensOut")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub tokens_out: Option<u32>,
}

/// Why an answer failed, as one of the words that stock peers know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// This model is not served here.
    ModelNotLoaded,
    /// Too much is waiting already.
    QueueFull,
    /// Nothing is taken now.
    Unavailable,
    /// Something broke.
    InternalError,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ModelNotLoaded,
        Self::QueueFull,
        Self::Unavailable,
        Self::InternalError,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// The code as it is on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ModelNotLoaded => "model_not_loaded",
            Self::QueueFull => "queue_full",
            Self::Unavailable => "unavailable",
            Self::InternalError => "internal_error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// The code that this word stands for; an unknown word counts as a general failure.
    pub fn of_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|code| code.as_str() == word).unwrap_or(Self::InternalError)
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of_word(&lenient::value::<_, String>(deserializer)?))
    }
}

fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ErrorCode>, D::Error> {
    Ok(lenient::opt::<_, String>(deserializer)?.map(|word| ErrorCode::of_word(&word)))
}

/// A request failed (spec, "inferenceError").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceError {
    /// Which request.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// For people.
    #[serde(rename = "errorMessage", default, deserialize_with = "lenient::value")]
    pub error_message: String,
    /// For programs. Stock nodes would drop a message with any other word.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "code")]
    pub code: Option<ErrorCode>,
    /// The status of the backend's answer, if it answered with an error; only Warrens send it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub status: Option<u32>,
    /// The body of that answer; only Warrens send it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub body: Option<String>,
}

/// A query whether a model is available (spec, "modelQuery").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelQuery {
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
}

/// Whether it is (spec, "modelQueryResponse").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelQueryResponse {
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// Whether it can be sent.
    #[serde(default, deserialize_with = "lenient::value")]
    pub available: bool,
    /// The size of all its files, in bytes.
    #[serde(rename = "totalSizeBytes")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub total_size_bytes: Option<u64>,
}

/// Send this model (spec, "modelTransferRequest").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTransferRequest {
    /// Names the transfer.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
}

/// A piece of a file (spec, "modelTransferChunk").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelTransferChunk {
    /// The transfer.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// The file's name from its sender: not to be trusted.
    pub file_name: String,
    /// Where in the file, in bytes.
    #[serde(deserialize_with = "lenient::size")]
    pub offset: u64,
    /// Up to 1 MiB, in base64.
    pub data: String,
    /// Whether this chunk completes the file. Stock peers set it for the last file only.
    #[serde(default, deserialize_with = "lenient::value")]
    pub is_last_chunk: bool,
}

/// All files were sent (spec, "modelTransferComplete").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTransferComplete {
    /// The transfer.
    #[serde(rename = "transferID")]
    pub transfer_id: WireId,
    /// The model.
    #[serde(rename = "modelID", default, deserialize_with = "lenient::value")]
    pub model_id: String,
}

/// Load a model (stock peers).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadModel {
    /// Names the request.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
}

/// A model was loaded (stock peers).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelLoaded {
    /// The request.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// How long it took, in milliseconds.
    #[serde(rename = "loadTimeMs", default, deserialize_with = "lenient::value")]
    pub load_time_ms: u32,
}

/// A model was not loaded (stock peers).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelLoadError {
    /// The request.
    #[serde(rename = "requestID")]
    pub request_id: WireId,
    /// The model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// Why, such as `not_swappable: …`.
    #[serde(default, deserialize_with = "lenient::value")]
    pub reason: String,
}
