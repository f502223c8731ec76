//! Notices for the operator.

use std::{fmt, time::Duration};

use crate::entry::{Key, NodeId};

/// A notice for the operator. Its text ([`Display`](fmt::Display)) is one sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// The own wall clock is away from that of most linked members.
    Clock {
        /// By how much.
        by: Duration,
    },
    /// A version is ahead of the cluster's time, and waits.
    Held {
        /// The object.
        key: Key,
        /// Its writer.
        node: NodeId,
        /// How far ahead it was when it came.
        by: Duration,
    },
    /// A bound is reached: objects of other members are not taken in.
    Full {
        /// Which bound.
        bound: &'static str,
    },
    /// An object is above the bound of this member.
    TooLarge {
        /// The object.
        key: Key,
    },
    /// Two members with equal contexts held different objects, which should be impossible. What
    /// differed is made equal.
    Unequal {
        /// The other member.
        node: NodeId,
    },
    /// A session of another machine came under this member's id, or a session that this disk does
    /// not know: it is deleted.
    Forgotten {
        /// The session.
        key: Key,
    },
}

impl Notice {
    /// Whether it is a fault of the program or of a disk, and not of the surroundings.
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
