//! Addresses for a direct connection, as stock Macs exchange them. A relay does not read them.

use serde::{Deserialize, Serialize};

use super::{envelope, forward::ForwardKind};
use crate::mesh::lenient;

/// The payload of `offer` and `answer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// The sender.
    #[serde(rename = "fromNodeID")]
    pub from: String,
    /// The recipient.
    #[serde(rename = "toNodeID")]
    pub to: String,
    /// The session of the attempt, and of the relay session that may follow it.
    #[serde(rename = "sessionID", default, deserialize_with = "lenient::value")]
    pub session: String,
    /// Where it can be reached.
    pub connection_info: ConnectionInfo,
    /// The signature of `FROM:TO:SESSION`, in hex. Stock peers do not verify it.
    #[serde(default, deserialize_with = "lenient::value")]
    pub signature: String,
}

/// Where a node can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionInfo {
    /// Its address as seen from outside.
    #[serde(rename = "publicIP", default, deserialize_with = "lenient::value")]
    pub public_ip: String,
    /// Its port as seen from outside.
    #[serde(default, deserialize_with = "lenient::value")]
    pub public_port: u32,
    /// Its address in its own network.
    #[serde(rename = "localIP")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub local_ip: Option<String>,
    /// Its port there.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub local_port: Option<u32>,
    /// `portRestricted`, `symmetric` or `unknown`.
    #[serde(default, deserialize_with = "lenient::value")]
    pub nat_type: String,
    /// Stock Macs' key for direct connections.
    #[serde(rename = "wgPublicKey")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub wg_public_key: Option<String>,
}

/// The payload of `iceCandidate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The sender.
    #[serde(rename = "fromNodeID")]
    pub from: String,
    /// The recipient.
    #[serde(rename = "toNodeID")]
    pub to: String,
    /// The session of the attempt.
    #[serde(rename = "sessionID", default, deserialize_with = "lenient::value")]
    pub session: String,
    /// The address.
    pub candidate: CandidateAddress,
}

/// An address to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateAddress {
    /// The address.
    #[serde(default, deserialize_with = "lenient::value")]
    pub ip: String,
    /// The port.
    #[serde(default, deserialize_with = "lenient::value")]
    pub port: u32,
    /// `host`, `serverReflexive` or `relayed`.
    #[serde(rename = "type", default, deserialize_with = "lenient::value")]
    pub kind: String,
    /// The higher, the sooner it is tried.
    #[serde(default, deserialize_with = "lenient::value")]
    pub priority: u32,
}

impl Offer {
    /// The text of an offer, or with [`ForwardKind::Answer`] of an answer.
    pub fn encode(&self, kind: ForwardKind) -> String {
        envelope::write(kind.name(), self)
    }
}

impl Candidate {
    /// The message's text.
    pub fn encode(&self) -> String {
        envelope::write(ForwardKind::IceCandidate.name(), self)
    }
}
