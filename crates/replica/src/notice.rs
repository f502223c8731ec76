//! Notices for the operator.

use std::{fmt, time::Duration};

use crate::entry::{Key, NodeId};

/// A notice for the operator. Its text ([`Display`](fmt::Display)) is one sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// This machine's wall clock differs from the cluster's time.
    Clock {
        /// By how much.
        by: Duration,
    },
    /// A version is ahead of the cluster's time, so it is held.
    Held {
        /// The object.
        key: Key,
        /// Its writer.
        node: NodeId,
        /// How far ahead it was when it came.
        by: Duration,
    },
    /// A bound is reached, so objects of other members are not taken in.
    Full {
        /// Which bound.
        bound: &'static str,
    },
    /// An object is larger than this member's bound.
    TooLarge {
        /// The object.
        key: Key,
    },
    /// Two members with equal contexts held different objects, which should be impossible. They
    /// make themselves equal.
    Unequal {
        /// The other member.
        node: NodeId,
    },
    /// A session came that names this member as its owner, and that this disk does not know. It is
    /// deleted. Another machine with this member's id may have written it.
    Forgotten {
        /// The session.
        key: Key,
    },
}

impl Notice {
    /// Whether it is a fault of the program or of a disk, rather than of the surroundings.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Unequal { .. })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clock { by } => {
                write!(f, "this machine's clock is {} s away from the cluster's", by.as_secs())
            }
            Self::Held { key, node, by } => write!(
                f,
                "{} was written by {node}, whose clock is {} s ahead: it is shown when its time comes",
                key.id,
                by.as_secs()
            ),
            Self::Full { bound } => {
                write!(f, "the cluster has reached its bound of {bound}: new ones are not taken in")
            }
            Self::TooLarge { key } => write!(f, "{} is too large to be taken in", key.id),
            Self::Unequal { node } => {
                write!(f, "{node} held other objects than this machine; they are made equal")
            }
            Self::Forgotten { key } => {
                write!(f, "session {} is not known on this machine any more and is deleted", key.id)
            }
        }
    }
}
