//! How a member introduces itself, inside the handshake.

use serde::{Deserialize, Serialize};

use crate::tokens::book::Tag;

/// The version of the link's messages.
pub(crate) const VERSION: u16 = 1;
/// The most bytes of a hello.
pub(crate) const MAX_HELLO: usize = 16 * 1024;
/// The most addresses of a member.
pub(crate) const MAX_ADDRESSES: usize = 8;
/// The longest name or address, in bytes.
pub(crate) const MAX_TEXT: usize = 256;

/// How a member introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) node_id: String,
    /// 64 random bits of its present start.
    pub(crate) incarnation: u64,
    /// Counts its dials, so that the newer of two can be told.
    pub(crate) dial: u64,
    pub(crate) name: String,
    /// The addresses of its peer port.
    #[serde(default)]
    pub(crate) addresses: Vec<String>,
    /// The lowest and the highest version that it speaks.
    pub(crate) speaks: (u16, u16),
    /// The token that it proves. It may be a former one.
    #[serde(default)]
    pub(crate) token: Tag,
}

/// Why a hello is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHello {
    #[error("its hello cannot be read")]
    Unreadable,
    #[error("it speaks versions {0} to {1} of the peer link, and this Warren speaks {VERSION}")]
    Version(u16, u16),
}

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
        // Text and numbers are always JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadHello> {
        if bytes.len() > MAX_HELLO {
            return Err(BadHello::Unreadable);
        }
        let hello: Self = serde_json::from_slice(bytes).map_err(|_| BadHello::Unreadable)?;
        if !hello.is_sound() {
            return Err(BadHello::Unreadable);
        }
        let (lowest, highest) = hello.speaks;
        match (lowest..=highest).contains(&VERSION) {
            true => Ok(hello),
            false => Err(BadHello::Version(lowest, highest)),
        }
    }

    fn is_sound(&self) -> bool {
        let mut texts = self.addresses.iter().chain([&self.name, &self.node_id]);
        self.addresses.len() <= MAX_ADDRESSES
            && !self.node_id.is_empty()
            && texts.all(|text| text.len() <= MAX_TEXT)
    }
}
