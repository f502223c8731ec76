//! The two forms of a message: flat, `{"hello":{…}}`, as the spec has it, and wrapped,
//! `{"hello":{"_0":{…}}}`, as stock peers write it. Both are read.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::message::ClusterMessage;
use crate::{
    json::clip,
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
    /// What is said.
    pub message: ClusterMessage,
    /// How, so that an answer can be in the same form.
    pub dialect: Dialect,
}

/// What a message that cannot be understood asked for, so that it can be told so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// An answer to this request.
    Inference(WireId),
    /// Whether a model is to be had.
    Model(String),
    /// This transfer.
    Transfer(WireId),
    /// That a model is loaded: the request, and the model.
    Load(WireId, String),
}

/// A message that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} was not understood: {why}")]
pub struct BadMessage {
    /// What it says that it is, cut to a bounded length; empty if it does not say.
    pub kind: String,
    /// What is wrong with it.
    pub why: String,
    /// What it asked for, if it asked for anything.
    pub asked: Option<Asked>,
    /// The form that it had.
    pub dialect: Dialect,
}

/// The longest kind that is told, in bytes.
const MAX_KIND: usize = 64;

/// Reads a message.
///
/// # Errors
/// [`BadMessage`] when it is none, or lacks what it cannot be understood without.
pub fn decode(bytes: &[u8]) -> Result<Decoded, BadMessage> {
    let outer: Outer<'_> = serde_json::from_slice(bytes).map_err(|error| not_json(&error))?;
    let (dialect, inner) = unwrap(outer.value);
    match read(&outer.kind, inner) {
        Ok(message) => Ok(Decoded { message, dialect }),
        Err(why) => Err(BadMessage {
            kind: clip(&outer.kind, MAX_KIND).to_owned(),
            why,
            asked: asked(&outer.kind, inner),
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
    }
}

/// The one key of a message and what stands under it. Of several keys the first counts.
struct Outer<'a> {
    kind: String,
    value: &'a RawValue,
}

impl<'de> Deserialize<'de> for Outer<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Outer<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with one key")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let Some((kind, value)) = map.next_entry::<String, &'de RawValue>()? else {
                    return Err(serde::de::Error::custom("the object is empty"));
                };
                while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
                Ok(Outer { kind, value })
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

/// What stands in the inner object, if there is one.
fn unwrap(value: &RawValue) -> (Dialect, &str) {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(rename = "_0", borrow)]
        inner: &'a RawValue,
    }

    let text = value.get();
    let begins = text.strip_prefix('{').map(str::trim_ascii_start);
    if begins.is_some_and(|rest| rest.starts_with("\"_0\""))
        && let Ok(wrapped) = serde_json::from_str::<Wrapped<'_>>(text)
    {
        return (Dialect::Wrapped, wrapped.inner.get());
    }
    (Dialect::Flat, text)
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
        _ => return Err("there is no such message here".to_owned()),
    })
}

fn parse<T: DeserializeOwned>(inner: &str) -> Result<T, String> {
    serde_json::from_str(inner).map_err(|error| error.to_string())
}

fn not_json(error: &serde_json::Error) -> BadMessage {
    let why = error.to_string();
    BadMessage { kind: String::new(), why, asked: None, dialect: Dialect::default() }
}

fn asked(kind: &str, inner: &str) -> Option<Asked> {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(inner).ok()?;
    let text = |name: &str| {
        fields.get(name)?.as_str().filter(|text| text.len() <= MAX_ID * 2).map(str::to_owned)
    };
    let id = |name: &str| text(name).map(|text| WireId::from(text.as_str()));
    match kind {
        "inferenceRequest" => id("requestID").map(Asked::Inference),
        "modelQuery" => text("modelID").map(Asked::Model),
        "loadModel" => Some(Asked::Load(id("requestID")?, text("modelID").unwrap_or_default())),
        _ => id("transferID").filter(|_| kind.ends_with("Request")).map(Asked::Transfer),
    }
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
