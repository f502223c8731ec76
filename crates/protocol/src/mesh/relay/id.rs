//! Ids of nodes, as relays take them.

use std::{borrow::Borrow, fmt, sync::Arc};

use base::NodeId;

/// The longest id, in bytes.
const MAX_ID: usize = 128;

/// The id of a node on a relay: any text of 1 to 128 bytes, since stock relays accept any. An id of
/// 64 hex digits is a public key; it is stored in lower case, so that it has only one spelling.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelayNodeId(Arc<str>);

/// Text that is not an id: empty, or longer than 128 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a node's id has 1 to {MAX_ID} bytes")]
pub struct NotARelayNodeId;

impl RelayNodeId {
    /// The text as an id.
    ///
    /// # Errors
    /// [`NotARelayNodeId`].
    pub fn new(text: &str) -> Result<Self, NotARelayNodeId> {
        if !Self::fits(text) {
            return Err(NotARelayNodeId);
        }
        match text.parse::<NodeId>() {
            Ok(key) => Ok(key.into()),
            Err(_) => Ok(Self(text.into())),
        }
    }

    /// Whether text has a valid length for an id.
    pub(super) fn fits(text: &str) -> bool {
        (1..=MAX_ID).contains(&text.len())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The public key that it is, if it is one.
    pub fn key(&self) -> Option<NodeId> {
        self.0.parse().ok()
    }

    /// Whether text is this id.
    pub fn is(&self, text: &str) -> bool {
        *self.0 == *text || (text.len() == 64 && Self::new(text).is_ok_and(|other| other == *self))
    }
}

impl From<NodeId> for RelayNodeId {
    fn from(key: NodeId) -> Self {
        Self(key.to_string().into())
    }
}

impl Borrow<str> for RelayNodeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelayNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RelayNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_form_and_other_text_stays_as_it_is() {
        let upper = RelayNodeId::new(&"AB".repeat(32)).unwrap();
        assert_eq!(upper.as_str(), "ab".repeat(32));
        assert!(upper.is(&"AB".repeat(32)) && upper.is(&"ab".repeat(32)));
        assert_eq!(upper.key(), Some(NodeId::new([0xab; 32])));
        let short = RelayNodeId::new("AB").unwrap();
        assert_eq!((short.as_str(), short.key()), ("AB", None));
        assert!(!short.is("ab"));
    }

    #[test]
    fn an_id_is_bounded() {
        assert_eq!(RelayNodeId::new(""), Err(NotARelayNodeId));
        assert!(RelayNodeId::new(&"x".repeat(128)).is_ok());
        assert_eq!(RelayNodeId::new(&"x".repeat(129)), Err(NotARelayNodeId));
    }
}
