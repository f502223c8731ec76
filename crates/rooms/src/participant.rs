//! Who joins, and the connection of a participant.

use std::net::SocketAddr;

use base::Secret;
use protocol::room::{Capabilities, MachineSpecs, ParticipantInfo, RuntimeConfig};

/// How a participant is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By a tunnel that it opens, as stock participants do.
    Tunnel,
    /// By the relay link of a Warren's worker.
    Worker,
    /// By an endpoint that the server calls, at this address.
    Endpoint(SocketAddr),
}

/// Who wants to join.
#[derive(Debug, Clone, PartialEq)]
pub struct Joining {
    /// Its id, which it chooses.
    pub id: String,
    /// What people call it.
    pub nickname: String,
    /// Its models; not empty.
    pub models: Vec<String>,
    /// Where its backend is, as it tells; a URL.
    pub endpoint: String,
    /// Its machine.
    pub specs: MachineSpecs,
    /// How its models generate by default.
    pub config: RuntimeConfig,
    /// What its backend serves.
    pub capabilities: Capabilities,
    /// How it is connected.
    pub kind: Kind,
    /// How many requests it takes at once; 0 counts as 1.
    pub max_concurrent: u32,
    /// What shows that the participant of this id is the sender's own.
    pub session: Option<String>,
}

/// Who has joined.
pub struct Joined {
    /// It, as everybody sees it.
    pub participant: ParticipantInfo,
    /// Whether it is new in the room.
    pub created: bool,
    /// What shows from now on that a request is its own; told here, and kept nowhere. A participant
    /// that has shown it keeps the one that it has.
    pub session: Secret,
}

/// A participant's connection: it counts as connected until this is dropped.
pub struct Connection {}

impl Connection {
    /// The participant was heard of.
    pub fn heard(&self, now: u64) {
        todo!()
    }

    /// It has these models from now on.
    pub fn models(&self, models: Vec<String>, now: u64) {
        todo!()
    }

    /// Until it has to end, and why.
    pub async fn ended(&self) -> Ended {
        todo!()
    }
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Another connection of the same participant took its place.
    Superseded,
    /// The participant left, or was removed.
    Removed,
    /// The room was closed.
    RoomClosed,
}
