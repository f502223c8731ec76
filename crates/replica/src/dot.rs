//! The name of one write.

use std::fmt;

use serde::{Deserialize, Serialize};

/// 64 random bits, drawn at each start of a member.
///
/// A counter alone would be used twice after a crash that lost the newest writes, after an old disk
/// was restored, or on a copied disk. Then two writes would have one name, and one of them would be
/// lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation(#[serde(with = "postcard::fixint::le")] pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// One write: the incarnation that wrote it, and the write's number there, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dot {
    /// The incarnation of the writer.
    pub incarnation: Incarnation,
    /// Which of the incarnation's writes it is, from 1.
    pub counter: u64,
}

impl Dot {
    /// The write number `counter` of `incarnation`.
    pub const fn new(incarnation: Incarnation, counter: u64) -> Self {
        Self { incarnation, counter }
    }
}

impl fmt::Debug for Dot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}.{}", self.incarnation.0 >> 48, self.counter)
    }
}
