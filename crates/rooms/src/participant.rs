//! A participant's join, and its connection.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};

use base::Secret;
use protocol::room::{Capabilities, MachineSpecs, ParticipantInfo, RuntimeConfig};

use crate::{room::Room, state::LinkHandle};

/// A participant's kind of connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By a tunnel that it opens, as stock participants do.
    Tunnel,
    /// By the relay link of a Warren's worker.
    Worker,
    /// By an endpoint that the server calls, at this address.
    Endpoint(SocketAddr),
}

/// A request to join.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinRequest {
    /// Its id, which it chooses.
    pub id: String,
    /// Its nickname, for people.
    pub nickname: String,
    /// Its models; not empty.
    pub models: Vec<String>,
    /// The URL of its backend, as it reports it.
    pub endpoint: String,
    /// Its machine.
    pub specs: MachineSpecs,
    /// The default options with which its models generate.
    pub config: RuntimeConfig,
    /// The endpoints of its backend.
    pub capabilities: Capabilities,
    /// Its kind of connection.
    pub kind: Kind,
    /// How many requests it takes at once; 0 counts as 1.
    pub max_concurrent: u32,
    /// The session token, which proves that a participant is the sender's own.
    pub session: Option<String>,
}

/// A participant that has joined.
pub struct JoinAnswer {
    /// Its public description.
    pub participant: ParticipantInfo,
    /// Whether it is new in the room.
    pub created: bool,
    /// The token that proves from now on that a request is the participant's own; only its hash is
    /// stored. A participant that has shown its token keeps it.
    pub session: Secret,
}

/// A participant's connection: it counts as connected until this is dropped.
pub struct Connection {
    room: Arc<Room>,
    id: String,
    linked: LinkHandle,
}

impl Connection {
    pub(crate) const fn new(room: Arc<Room>, id: String, linked: LinkHandle) -> Self {
        Self { room, id, linked }
    }

    /// Records that the participant was heard of. Cheap: it takes no lock.
    pub fn heard(&self, now: u64) {
        self.linked.seen.fetch_max(now, Ordering::Relaxed);
    }

    /// Sets its models, without names that are not allowed in a room.
    pub fn models(&self, models: Vec<String>, now: u64) {
        self.room.set_models(&self.id, self.linked.serial, models, now);
    }

    /// Waits until its participant has joined again with other data, so that its models must be
    /// read again. Cancel safe.
    pub async fn changed(&self) {
        self.linked.end.changed().await;
    }

    /// Waits until it has to end. Returns the reason. Cancel safe.
    pub async fn ended(&self) -> ConnectionEnd {
        self.linked.end.ended().await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.room.disconnect(&self.id, self.linked.serial);
    }
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// Another connection of the same participant took its place.
    Superseded,
    /// The participant left, or was removed.
    Removed,
    /// The room was closed.
    RoomClosed,
    /// Another server has taken the room over.
    Moved,
}
