//! Registration.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{envelope, fault::Fault, id::RelayNodeId, object::Object};
use crate::json::clip;

/// The longest display name, in bytes.
const MAX_NAME: usize = 128;

/// The longest key or signature, in bytes.
const MAX_KEY: usize = 256;

/// The longest capabilities, in bytes.
pub const MAX_CAPABILITIES: usize = 16 * 1024;

/// A node's registration, with its offer: `{"register":{…}}`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Register {
    /// Its id.
    #[serde(rename = "nodeID", serialize_with = "as_text")]
    pub node: RelayNodeId,
    /// Its public key, which is its id where that is a key.
    pub public_key: String,
    /// Stock Macs' key for direct connections.
    #[serde(rename = "wgPublicKey", skip_serializing_if = "Option::is_none")]
    pub wg_public_key: Option<String>,
    /// For people, cut to 128 bytes.
    pub display_name: String,
    /// Its offer, word for word.
    pub capabilities: Box<RawValue>,
    /// The signature of its id, or of the reply to a challenge, in hex; empty if there is none.
    pub signature: String,
}

pub(super) fn as_text<S: serde::Serializer>(id: &RelayNodeId, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(id.as_str())
}

impl Register {
    pub(super) fn read(payload: &RawValue) -> Result<Self, Fault> {
        let (object, _) = Object::unwrap("register", payload).map_err(|fault| match fault {
            Fault::NoPayload(_) => Fault::NoNodeId,
            other => other,
        })?;
        let node = object.text("nodeID").ok().and_then(|id| RelayNodeId::new(&id).ok());
        let node = node.ok_or(Fault::NoNodeId)?;
        Ok(Self {
            public_key: public_key(&object, &node)?,
            wg_public_key: short(&object, "wgPublicKey")?,
            display_name: clip(&short_or_long(&object), MAX_NAME).to_owned(),
            capabilities: capabilities(&object)?,
            signature: short(&object, "signature")?.unwrap_or_default(),
            node,
        })
    }

    /// The message's text.
    pub fn encode(&self) -> String {
        envelope::write("register", self)
    }
}

/// The public key of a registration. If the id is a key, any other key is refused, because every
/// peer that finds it in a list would trust it.
fn public_key(object: &Object<'_>, node: &RelayNodeId) -> Result<String, Fault> {
    match short(object, "publicKey")? {
        Some(key) if node.key().is_some() && !node.is(&key) => Err(Fault::Register("publicKey")),
        Some(key) if node.key().is_none() => Ok(key),
        _ => Ok(node.to_string()),
    }
}

fn short(object: &Object<'_>, field: &'static str) -> Result<Option<String>, Fault> {
    match object.opt_text(field) {
        Ok(None) => Ok(None),
        Ok(Some(text)) if text.len() <= MAX_KEY => Ok(Some(text.into_owned())),
        _ => Err(Fault::Register(field)),
    }
}

fn short_or_long(object: &Object<'_>) -> String {
    object.opt_text("displayName").ok().flatten().unwrap_or_default().into_owned()
}

fn capabilities(object: &Object<'_>) -> Result<Box<RawValue>, Fault> {
    match object.get("capabilities") {
        Some(raw) if raw.get().len() > MAX_CAPABILITIES => Err(Fault::Register("capabilities")),
        Some(raw) => Ok(raw.to_owned()),
        None => Ok(RawValue::NULL.to_owned()),
    }
}
