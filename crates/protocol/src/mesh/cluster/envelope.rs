//! The two forms of a message: flat, `{"hello":{…}}`, as the spec has it, and wrapped,
//! `{"hello":{"_0":{…}}}`, as stock peers write it. Both are read.

use std::{borrow::Cow, fmt};

use memchr::memmem;
use serde::{
    Deserializer, Serialize,
    de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::message::ClusterMessage;
use crate::{
    json::{clip, fields::Text},
    mesh::wire_id::{MAX_ID, WireId},
};

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `{"hello":{…}}`: the spec's form, and that of Warrens among each other.
    Flat,
    /// `{"hello":{"_0":{…}}}`: what stock peers write, and some of them need.
    #[default]
    Wrapped,
}

/// A message, and the form that it had.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The message.
    pub message: ClusterMessage,
    /// Its form, so that an answer can have the same one.
    pub dialect: Dialect,
}

/// The request in an unreadable message, so that it can be answered with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailedRequest {
    /// A request for inference, with this id.
    Inference(WireId),
    /// A query whether this model is available.
    Model(String),
    /// A request for a model's files, as this transfer.
    Transfer(WireId),
    /// A request to load a model: its id, and the model.
    Load(WireId, String),
    /// None: the message was a part of the answer to this request. The answer can no longer be
    /// complete.
    Nothing(WireId),
}

/// A message that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} was not understood: {why}")]
pub struct BadMessage {
    /// Its kind, cut to a bounded length; empty when it has none.
    pub kind: String,
    /// Its fault.
    pub why: String,
    /// The request in it, if it was one.
    pub request: Option<FailedRequest>,
    /// The form that it had.
    pub dialect: Dialect,
}

/// The longest kind that is reported, in bytes.
const MAX_KIND: usize = 64;

/// The longest error text, in bytes: it may repeat a stranger's input.
const MAX_WHY: usize = 256;

/// The longest model name that is repeated in an answer, in bytes.
const MAX_ASKED: usize = 512;

/// The longest message of a kind without large content, in bytes. Its unknown fields are stored,
/// which takes many times its length.
const MAX_SMALL: usize = 256 * 1024;

/// The longest list of a model's files, in bytes.
const MAX_MANIFEST: usize = 8 * 1024 * 1024;

/// Reads a message. Bodies of requests and chunks of answers stay raw JSON.
///
/// # Errors
/// [`BadMessage`] when it is not a message, lacks a required field, or is longer than its kind
/// allows.
pub fn decode(bytes: &[u8]) -> Result<Decoded, BadMessage> {
    let (kind, value) = outer(bytes).map_err(|error| not_json(&error))?;
    let (dialect, inner) = unwrap(value);
    match fits(&kind, inner).and_then(|()| read(&kind, inner)) {
        Ok(message) => Ok(Decoded { message, dialect }),
        Err(why) => Err(BadMessage {
            kind: clip(&kind, MAX_KIND).to_owned(),
            why: clip(&why, MAX_WHY).to_owned(),
            request: request(&kind, inner),
            dialect,
        }),
    }
}

/// Writes a message.
pub fn encode(message: &ClusterMessage, dialect: Dialect) -> Vec<u8> {
    use ClusterMessage as M;
    match message {
        M::Hello(body) => write("hello", body, dialect),
        M::HelloAck(body) => write("helloAck", body, dialect),
        M::Heartbeat(body) => write("heartbeat", body, dialect),
        M::HeartbeatAck(body) => write("heartbeatAck", body, dialect),
        M::InferenceRequest(body) => write("inferenceRequest", body, dialect),
        M::InferenceChunk(body) => write("inferenceChunk", body, dialect),
        M::InferenceComplete(body) => write("inferenceComplete", body, dialect),
        M::InferenceError(body) => write("inferenceError", body, dialect),
        M::ModelQuery(body) => write("modelQuery", body, dialect),
        M::ModelQueryResponse(body) => write("modelQueryResponse", body, dialect),
        M::ModelTransferRequest(body) => write("modelTransferRequest", body, dialect),
        M::ModelTransferChunk(body) => write("modelTransferChunk", body, dialect),
        M::ModelTransferComplete(body) => write("modelTransferComplete", body, dialect),
        M::LoadModel(body) => write("loadModel", body, dialect),
        M::ModelLoaded(body) => write("modelLoaded", body, dialect),
        M::ModelLoadError(body) => write("modelLoadError", body, dialect),
        M::InferenceCancel(body) => write("inferenceCancel", body, dialect),
        M::ModelManifestRequest(body) => write("modelManifestRequest", body, dialect),
        M::ModelManifest(body) => write("modelManifest", body, dialect),
        M::ModelTreeRequest(body) => write("modelTreeRequest", body, dialect),
        M::ModelPieceRequest(body) => write("modelPieceRequest", body, dialect),
        M::ModelTransferError(body) => write("modelTransferError", body, dialect),
        M::ModelListRequest(body) => write("modelListRequest", body, dialect),
        M::ModelList(body) => write("modelList", body, dialect),
    }
}

/// Reads the first member of an object, or the first one with a given name. Other members are
/// ignored.
struct Member(Option<&'static str>);

impl<'de> DeserializeSeed<'de> for Member {
    type Value = Option<(Cow<'de, str>, &'de RawValue)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Member {
    type Value = Option<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while found.is_none()
            && let Some(Text(name)) = map.next_key()?
        {
            if self.0.is_none_or(|wanted| name == wanted) {
                found = Some((name, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// The one key of a message, and its value. If there are several keys, the first counts.
fn outer(bytes: &[u8]) -> Result<(Cow<'_, str>, &RawValue), serde_json::Error> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let member = Member(None).deserialize(&mut text)?;
    text.end()?;
    member.ok_or_else(|| serde::de::Error::custom("the object is empty"))
}

/// The content of the inner object, if there is one. Fields beside it are ignored.
fn unwrap(value: &RawValue) -> (Dialect, &str) {
    let text = value.get();
    // Only the text that has such a key somewhere is read a second time.
    if !text.starts_with('{') || memmem::find(text.as_bytes(), b"\"_0\"").is_none() {
        return (Dialect::Flat, text);
    }
    let inner = Member(Some("_0")).deserialize(&mut serde_json::Deserializer::from_str(text));
    match inner {
        Ok(Some((_, inner))) => (Dialect::Wrapped, inner.get()),
        _ => (Dialect::Flat, text),
    }
}

fn fits(kind: &str, inner: &str) -> Result<(), String> {
    let most = match kind {
        "inferenceRequest" | "inferenceChunk" | "inferenceError" | "modelTransferChunk" => {
            return Ok(());
        }
        "modelManifest" => MAX_MANIFEST,
        _ => MAX_SMALL,
    };
    let too_long = || format!("it has {} bytes: at most {most} are taken", inner.len());
    if inner.len() > most { Err(too_long()) } else { Ok(()) }
}

fn read(kind: &str, inner: &str) -> Result<ClusterMessage, String> {
    use ClusterMessage as M;
    Ok(match kind {
        "hello" => M::Hello(parse(inner)?),
        "helloAck" => M::HelloAck(parse(inner)?),
        "heartbeat" => M::Heartbeat(parse(inner)?),
        "heartbeatAck" => M::HeartbeatAck(parse(inner)?),
        "inferenceRequest" => M::InferenceRequest(parse(inner)?),
        "inferenceChunk" => M::InferenceChunk(parse(inner)?),
        "inferenceComplete" => M::InferenceComplete(parse(inner)?),
        "inferenceError" => M::InferenceError(parse(inner)?),
        "modelQuery" => M::ModelQuery(parse(inner)?),
        "modelQueryResponse" => M::ModelQueryResponse(parse(inner)?),
        "modelTransferRequest" => M::ModelTransferRequest(parse(inner)?),
        "modelTransferChunk" => M::ModelTransferChunk(parse(inner)?),
        "modelTransferComplete" => M::ModelTransferComplete(parse(inner)?),
        "loadModel" => M::LoadModel(parse(inner)?),
        "modelLoaded" => M::ModelLoaded(parse(inner)?),
        "modelLoadError" => M::ModelLoadError(parse(inner)?),
        "inferenceCancel" => M::InferenceCancel(parse(inner)?),
        "modelManifestRequest" => M::ModelManifestRequest(parse(inner)?),
        "modelManifest" => M::ModelManifest(parse(inner)?),
        "modelTreeRequest" => M::ModelTreeRequest(parse(inner)?),
        "modelPieceRequest" => M::ModelPieceRequest(parse(inner)?),
        "modelTransferError" => M::ModelTransferError(parse(inner)?),
        "modelListRequest" => M::ModelListRequest(parse(inner)?),
        "modelList" => M::ModelList(parse(inner)?),
        _ => return Err("there is no such message here".to_owned()),
    })
}

fn parse<T: DeserializeOwned>(inner: &str) -> Result<T, String> {
    serde_json::from_str(inner).map_err(|error| error.to_string())
}

fn not_json(error: &serde_json::Error) -> BadMessage {
    let why = clip(&error.to_string(), MAX_WHY).to_owned();
    BadMessage { kind: String::new(), why, request: None, dialect: Dialect::default() }
}

fn request(kind: &str, inner: &str) -> Option<FailedRequest> {
    let text = |name, most| text(inner, name).filter(|text| text.len() <= most);
    let id = |name| text(name, 2 * MAX_ID).map(|text| WireId::from(text.as_str()));
    let model = || text("modelID", MAX_ASKED);
    match kind {
        "inferenceRequest" => id("requestID").map(FailedRequest::Inference),
        "modelQuery" => model().map(FailedRequest::Model),
        "loadModel" => Some(FailedRequest::Load(id("requestID")?, model().unwrap_or_default())),
        "inferenceChunk" | "inferenceComplete" | "inferenceError" => {
            id("requestID").map(FailedRequest::Nothing)
        }
        _ if kind.ends_with("Request") => id("transferID").map(FailedRequest::Transfer),
        _ => None,
    }
}

/// The first member of this name, if it is text.
fn text(inner: &str, name: &'static str) -> Option<String> {
    let member = Member(Some(name)).deserialize(&mut serde_json::Deserializer::from_str(inner));
    let (_, value) = member.ok()??;
    serde_json::from_str::<String>(value.get()).ok()
}

fn write<T: Serialize>(kind: &str, body: &T, dialect: Dialect) -> Vec<u8> {
    let mut out = format!("{{\"{kind}\":").into_bytes();
    if dialect == Dialect::Wrapped {
        out.extend_from_slice(b"{\"_0\":");
    }
    // Strings, numbers and raw JSON under fixed names: they serialise.
    let written = serde_json::to_writer(&mut out, body);
    debug_assert!(written.is_ok(), "{written:?}");
    out.extend_from_slice(if dialect == Dialect::Wrapped { b"}}" } else { b"}" });
    out
}
