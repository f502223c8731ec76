//! The identity of a mesh node.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A node of the mesh: its Ed25519 public key, so that nobody else can be it. On the wire and for
/// people 64 lower-case hex digits; upper case is read, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId([u8; 32]);

/// A text that is not the id of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotANodeId;

impl fmt::Display for NotANodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node's id is 64 hex digits")
    }
}

impl std::error::Error for NotANodeId {}

impl NodeId {
    /// The id of the node with this public key.
    pub const fn new(public_key: [u8; 32]) -> Self {
        Self(public_key)
    }

    /// The public key.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its first eight hex digits, for logs and tables.
    pub fn short(&self) -> String {
        hex::encode(&self.0[..4])
    }

    /// Its first twenty hex digits in groups of four, for people to compare over another channel: 80
    /// bits, too many to make another key that has them.
    pub fn fingerprint(&self) -> String {
        let groups: Vec<String> = self.0.chunks_exact(2).take(5).map(hex::encode).collect();
        groups.join("-")
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for NodeId {
    type Err = NotANodeId;

    fn from_str(text: &str) -> Result<Self, NotANodeId> {
        let mut key = [0; 32];
        hex::decode_to_slice(text, &mut key).map_err(|_| NotANodeId)?;
        Ok(Self(key))
    }
}

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_in_either_case_and_written_in_lower() {
        let lower = "d04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737";
        for text in [lower.to_owned(), lower.to_uppercase()] {
            let id: NodeId = text.parse().unwrap();
            assert_eq!(id.to_string(), lower);
            assert_eq!(id.short(), "d04ab232");
            assert_eq!(id.fingerprint(), "d04a-b232-742b-b4ab-3a13");
        }
    }

    #[test]
    fn nothing_else_is_an_id() {
        for text in ["", "d0", &"g".repeat(64), &"a".repeat(63), &"é".repeat(32), &"+1".repeat(32)]
        {
            assert_eq!(text.parse::<NodeId>(), Err(NotANodeId), "{text}");
        }
    }
}
