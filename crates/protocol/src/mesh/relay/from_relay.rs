//! Messages from a relay to a node.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    discover::{DiscoverResponse, node_id},
    envelope::{self, Envelope},
    error::RelayError,
    fault::Fault,
    forward::{Forward, ForwardKind},
    id::RelayNodeId,
    object::Object,
    register::as_text,
    scan,
};
use crate::mesh::{date::AppleTime, lenient};

/// A message of a relay.
#[derive(Debug)]
pub enum FromRelay<'a> {
    /// The node is registered.
    RegisterAck(RegisterAck),
    /// The challenge to sign for a registration.
    RegisterChallenge(RegisterChallenge),
    /// Nodes that are there.
    DiscoverResponse(DiscoverResponse),
    /// A node has joined.
    PeerJoined(Presence),
    /// A node has left, and its relay sessions have ended.
    PeerLeft(Presence),
    /// Something went wrong.
    Error(RelayError),
    /// A message from another node.
    Forward(Forward<'a>),
}

/// The node is registered: `{"registerAck":{…}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterAck {
    /// Its id.
    #[serde(rename = "nodeID", serialize_with = "as_text", deserialize_with = "node_id")]
    pub node: RelayNodeId,
    /// When, by the relay's clock.
    #[serde(default)]
    pub registered_at: AppleTime,
    /// For how long, in seconds; counted from the last message on this connection.
    #[serde(default = "ttl", deserialize_with = "lenient::value")]
    pub ttl_seconds: f64,
}

fn ttl() -> f64 {
    super::TTL_SECONDS as f64
}

/// The nonce to sign, together with the relay's and the node's name, in order to register:
/// `{"registerChallenge":{"nonce":…}}`. It is the first message on a connection with
/// [`super::SUBPROTOCOL`], and is valid for the whole connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterChallenge {
    /// Hex digits.
    pub nonce: String,
}

/// A node that has joined or left: `{"peerJoined":{…}}`, `{"peerLeft":{…}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Presence {
    /// Its id.
    #[serde(rename = "nodeID", serialize_with = "as_text", deserialize_with = "node_id")]
    pub node: RelayNodeId,
    /// For people.
    #[serde(default, deserialize_with = "lenient::value")]
    pub display_name: String,
}

impl RegisterAck {
    /// The message's text.
    pub fn encode(&self) -> String {
        // Whole seconds are written as stock relays write them.
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Whole<'a> {
            #[serde(rename = "nodeID")]
            node: &'a str,
            registered_at: AppleTime,
            ttl_seconds: u64,
        }
        let Self { node, registered_at, ttl_seconds } = self;
        let ttl_seconds = *ttl_seconds as u64;
        let whole = Whole { node: node.as_str(), registered_at: *registered_at, ttl_seconds };
        envelope::write("registerAck", &whole)
    }
}

impl RegisterChallenge {
    /// The message's text.
    pub fn encode(&self) -> String {
        envelope::write("registerChallenge", self)
    }
}

impl Presence {
    /// The text that tells that a node has joined.
    pub fn joined(&self) -> String {
        envelope::write("peerJoined", self)
    }

    /// The text that tells that a node has left.
    pub fn left(&self) -> String {
        envelope::write("peerLeft", self)
    }
}

impl<'a> FromRelay<'a> {
    /// Reads a message, in either form.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(text: &'a str) -> Result<Self, Fault> {
        if let Some(data) = scan::relay_data(text) {
            return Ok(Self::Forward(data));
        }
        let envelope = Envelope::read(text)?;
        let payload = envelope.payload;
        Ok(match &*envelope.kind {
            "registerAck" => Self::RegisterAck(body("registerAck", payload)?),
            "registerChallenge" => Self::RegisterChallenge(body("registerChallenge", payload)?),
            "discoverResponse" => Self::DiscoverResponse(DiscoverResponse::read(payload)?),
            "peerJoined" => Self::PeerJoined(body("peerJoined", payload)?),
            "peerLeft" => Self::PeerLeft(body("peerLeft", payload)?),
            "error" => Self::Error(body("error", payload)?),
            name => match ForwardKind::named(name) {
                Some(kind) => Self::Forward(Forward::read(kind, &envelope)?),
                None => return Err(envelope.unsupported()),
            },
        })
    }
}

fn body<T: for<'de> Deserialize<'de>>(kind: &'static str, payload: &RawValue) -> Result<T, Fault> {
    let (_, text) = Object::unwrap(kind, payload)?;
    serde_json::from_str(text).map_err(|_| Fault::NoPayload(kind))
}
