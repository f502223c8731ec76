//! Discovery of other nodes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{envelope, fault::Fault, id::RelayNodeId, object::Object, register::as_text};
use crate::mesh::{date::AppleTime, lenient};

/// Asks for nodes: `{"discover":{…}}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Discover {
    /// The asking node.
    #[serde(rename = "requestingNodeID", serialize_with = "as_text")]
    pub node: RelayNodeId,
    /// The filter for nodes; all match when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
}

/// A filter for nodes. A missing or unreadable field excludes no node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    /// Nodes that have this model loaded, or could load it; case does not matter.
    #[serde(rename = "modelID")]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub model_id: Option<String>,
    /// Nodes with at least this much memory, in GiB.
    #[serde(rename = "minRAMGB")]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub min_ram_gb: Option<f64>,
    /// Those of this tier or a better one; 1 is best.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub min_tier: Option<u32>,
    /// The most nodes to return.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub max_peers: Option<u32>,
}

impl Discover {
    /// Reads a payload. When it does not name the asking node, that is its sender.
    pub(super) fn read(payload: &RawValue) -> Result<(Option<RelayNodeId>, Filter), Fault> {
        let (object, _) = Object::unwrap("discover", payload)?;
        let node = object.opt_text("requestingNodeID")?;
        let node = node.map(|id| RelayNodeId::new(&id)).transpose();
        let node = node.map_err(|_| object.bad("requestingNodeID"))?;
        let filter = object.get("filter").and_then(|raw| serde_json::from_str(raw.get()).ok());
        Ok((node, filter.unwrap_or_default()))
    }

    /// The message's text.
    pub fn encode(&self) -> String {
        envelope::write("discover", self)
    }
}

/// A node's entry in lists, without the time when it was last seen. It is written once, and used
/// for all lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRecord(Box<str>);

impl PeerRecord {
    /// The entry of a node that has registered.
    pub fn new(node: &super::Register) -> Self {
        let mut text = crate::json::write(&Listed {
            node: &node.node,
            public_key: &node.public_key,
            wg_public_key: node.wg_public_key.as_deref(),
            display_name: &node.display_name,
            capabilities: &node.capabilities,
        });
        // The brace that closes it comes after the rest.
        text.pop();
        Self(text.into())
    }

    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    fn write(&self, last_seen: AppleTime, out: &mut String) {
        out.push_str(&self.0);
        let _ = std::fmt::Write::write_fmt(out, format_args!(",\"lastSeen\":{:.3}", last_seen.0));
        out.push_str(",\"natType\":\"unknown\",\"endpoints\":[]}");
    }
}

/// A node's entry as it is written, when the node registers. It is read as [`PeerInfo`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    #[serde(rename = "nodeID", serialize_with = "as_text")]
    node: &'a RelayNodeId,
    public_key: &'a str,
    wg_public_key: Option<&'a str>,
    display_name: &'a str,
    capabilities: &'a RawValue,
}

/// A node as lists have it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerInfo {
    /// Its id.
    #[serde(rename = "nodeID", deserialize_with = "node_id")]
    pub node: RelayNodeId,
    /// Its public key.
    #[serde(default, deserialize_with = "lenient::value")]
    pub public_key: String,
    /// Stock Macs' key for direct connections.
    #[serde(default, rename = "wgPublicKey", deserialize_with = "lenient::opt")]
    pub wg_public_key: Option<String>,
    /// For people.
    #[serde(default, deserialize_with = "lenient::value")]
    pub display_name: String,
    /// Its registered offer, word for word.
    #[serde(default = "nothing")]
    pub capabilities: Box<RawValue>,
    /// The last time that the relay received something from it.
    #[serde(default)]
    pub last_seen: AppleTime,
}

fn nothing() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

pub(super) fn node_id<'de, D: serde::Deserializer<'de>>(from: D) -> Result<RelayNodeId, D::Error> {
    let text = lenient::value::<_, String>(from)?;
    RelayNodeId::new(&text).map_err(serde::de::Error::custom)
}

/// Nodes that are there: `{"discoverResponse":{"peers":[…]}}`.
#[derive(Debug, Clone)]
pub struct DiscoverResponse {
    /// The readable entries.
    pub peers: Vec<PeerInfo>,
    /// How many entries could not be read.
    pub unreadable: usize,
}

impl DiscoverResponse {
    /// The text of the message, made of nodes and the time when each was last seen.
    pub fn encode<'a>(peers: impl Iterator<Item = (&'a PeerRecord, AppleTime)>) -> String {
        let mut out = String::from("{\"discoverResponse\":{\"peers\":[");
        for (index, (record, last_seen)) in peers.enumerate() {
            if index > 0 {
                out.push(',');
            }
            record.write(last_seen, &mut out);
        }
        out.push_str("]}}");
        out
    }

    pub(super) fn read(payload: &RawValue) -> Result<Self, Fault> {
        let (object, _) = Object::unwrap("discoverResponse", payload)?;
        let listed = object.get("peers").ok_or_else(|| object.bad("peers"))?;
        let listed: Vec<&RawValue> =
            serde_json::from_str(listed.get()).map_err(|_| object.bad("peers"))?;
        let all = listed.len();
        let read = listed.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok());
        let peers: Vec<PeerInfo> = read.collect();
        Ok(Self { unreadable: all - peers.len(), peers })
    }
}
