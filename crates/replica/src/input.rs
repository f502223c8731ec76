//! The inputs of a replica.

use std::sync::Arc;

use crate::{
    dot::Incarnation,
    entry::{Key, NodeId, Version},
    message::Message,
};

/// The number of a link, chosen by the driver and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// One event.
#[derive(Debug, Clone)]
pub enum Input {
    /// This member writes an object. The session of a write belongs to this member from then on,
    /// unless it moves away. An unchanged value is written as well: the driver must leave out such
    /// writes.
    Write {
        /// The object.
        key: Key,
        /// The member that runs the session, holds the project's files or keeps the team.
        owner: NodeId,
        /// The object as JSON text.
        value: Arc<str>,
        /// How the write goes on from the version before it.
        change: Change,
    },
    /// This member deletes an object: its own session, a session of a lost owner, or an object of
    /// another kind.
    Delete {
        /// The object.
        key: Key,
    },
    /// A plain peer, which does not take part in replication, said this. The driver has checked
    /// that the peer may say it. A version that is known already is not written again.
    Adopt {
        /// The object.
        key: Key,
        /// The owner, as the peer says.
        owner: NodeId,
        /// The generation of a session or the stamp of another object, as the peer says.
        version: Version,
        /// The object as JSON text.
        value: Arc<str>,
    },
    /// A session that moves here is staged. When its new entry arrives, the session belongs to this
    /// member. Without this input the entry would be taken for a session that this disk forgot, and
    /// deleted. The expectation is not stored: the driver repeats it after a start, before the
    /// first link.
    Expect {
        /// The session.
        key: Key,
    },
    /// The staged session does not move here after all.
    Unexpect {
        /// The session.
        key: Key,
    },
    /// A link to another member is open. There is at most one to each member.
    LinkUp {
        /// The link.
        link: LinkId,
        /// The member at its other end.
        node: NodeId,
        /// That member's incarnation.
        incarnation: Incarnation,
    },
    /// A link is closed.
    LinkDown {
        /// The link.
        link: LinkId,
    },
    /// A linked member sent this.
    Message {
        /// Its link.
        link: LinkId,
        /// The message.
        message: Message,
    },
    /// Another machine appeared with this member's id. For ten seconds this member does not repeat
    /// the versions of its sessions. Otherwise both machines would write against each other without
    /// end.
    Doubled,
    /// The facts of every [`Output::Keep`](crate::Output::Keep) up to this token are on the disk.
    Kept {
        /// The token of the last of them.
        token: u64,
    },
}

/// How a write goes on from the version before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A new version of the same life. If other members took this member's session for dead, the
    /// write begins a new life.
    Update,
    /// The object begins a new life if it was deleted: a member was invited again.
    Begin,
    /// The session moves to the written owner. Only the driver of a hand-over writes this.
    Move,
}

/// Why a write, a delete or an adoption was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The object was deleted, and its kind does not begin again.
    #[error("it was deleted")]
    Deleted,
    /// There is no such object.
    #[error("there is no such object")]
    Unknown,
    /// The session belongs to another member.
    #[error("it belongs to {0}")]
    Foreign(NodeId),
    /// An id or the value is too long.
    #[error("it is too large: the limit is {limit} bytes")]
    TooLarge {
        /// The limit that was exceeded.
        limit: usize,
    },
    /// The cluster's objects are too many, or together too large.
    #[error("the cluster holds too many objects")]
    Full,
    /// A plain peer's stamp is more than a minute ahead, or out of range.
    #[error("its time is out of range")]
    Time,
}
