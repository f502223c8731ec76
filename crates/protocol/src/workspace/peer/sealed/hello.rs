//! The first message of each end: `hello`.

use serde::{Deserialize, Serialize};

use crate::workspace::{
    bounded::{addresses, name, text},
    limits::NAME_MAX,
};

/// `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedHello {
    /// The sender's id.
    #[serde(deserialize_with = "name")]
    pub node_id: String,
    /// Drawn at random at the sender's start. The receiver's own: it has dialled itself.
    pub incarnation: u64,
    /// Counts the links that the dialling end has dialled since its start; its answer repeats it.
    pub dial: u64,
    /// The sender's name, for people.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Where other members reach the sender.
    #[serde(default, deserialize_with = "addresses")]
    pub addresses: Vec<String>,
    /// The versions of these messages that the sender reads and writes.
    pub speaks: Speaks,
    /// The sender's program, for people.
    #[serde(default, deserialize_with = "text::<_, NAME_MAX>")]
    pub version: String,
}

/// Versions, from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct Speaks {
    /// The lowest.
    pub lowest: u32,
    /// The highest.
    pub highest: u32,
}

impl Speaks {
    /// The highest version that both speak.
    pub fn common(self, other: Self) -> Option<u32> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}

impl From<(u32, u32)> for Speaks {
    fn from((lowest, highest): (u32, u32)) -> Self {
        Self { lowest, highest }
    }
}

impl From<Speaks> for (u32, u32) {
    fn from(speaks: Speaks) -> Self {
        (speaks.lowest, speaks.highest)
    }
}
