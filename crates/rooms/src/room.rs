//! One room.

use std::{net::IpAddr, sync::Arc};

use base::{KeyId, ProviderId, RoomId, Scope, Secret};
use protocol::room::{
    ParticipantInfo, RoomEvent, RoomInfo, RoomSummary, RuntimeConfig, Selector, ServerMessage,
    Status, plane::ChangeRoom,
};

use crate::{
    activity::{JobEnded, JobStarted},
    error::RoomError,
    events::{Form, Subscription},
    participant::{Connection, Joined, Joining, Kind},
};

/// One room. Its methods lock it for a moment, and never wait.
pub struct Room {}

/// Whom a selector finds in a room now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Available {
    /// Somebody who is connected, or was a moment ago: worth waiting for. Under this name they offer
    /// themselves to the dispatcher.
    Known(String),
    /// One participant, which is not connected.
    Disconnected {
        /// Its id.
        id: String,
    },
    /// Nobody.
    Nobody,
}

/// A participant as whoever serves it needs to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub nickname: String,
    /// Its models; not empty.
    pub models: Vec<String>,
    /// How it is connected.
    pub kind: Kind,
    /// How many requests it takes at once.
    pub max_concurrent: u32,
    /// What its backend serves.
    pub capabilities: protocol::room::Capabilities,
    /// How it generates by default: its own defaults, over the room's.
    pub defaults: RuntimeConfig,
}

impl Room {
    /// Its id.
    pub fn id(&self) -> &RoomId {
        todo!()
    }

    /// The scope of its participants.
    pub fn scope(&self) -> Scope {
        Scope::room(self.id())
    }

    /// Its six-character code.
    pub fn short_code(&self) -> &str {
        todo!()
    }

    /// The code to say aloud.
    pub fn spoken_code(&self) -> &str {
        todo!()
    }

    /// What people call it.
    pub fn name(&self) -> String {
        todo!()
    }

    /// Whether joining and using it need a password.
    pub fn has_password(&self) -> bool {
        todo!()
    }

    /// Whether it is listed for everybody.
    pub fn is_public(&self) -> bool {
        todo!()
    }

    /// The key that made it.
    pub fn owner(&self) -> Option<&KeyId> {
        todo!()
    }

    /// It, as stock clients see it: `code` is the short one.
    pub fn summary(&self) -> RoomSummary {
        todo!()
    }

    /// It, as the spec's messages show it: `code` is the spoken one.
    pub fn info(&self) -> RoomInfo {
        todo!()
    }

    /// Its participants, in the order in which they joined.
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        todo!()
    }

    /// One participant.
    pub fn participant(&self, id: &str) -> Option<ParticipantInfo> {
        todo!()
    }

    /// One participant, for whoever serves it.
    pub fn served(&self, id: &str) -> Option<Served> {
        todo!()
    }

    /// How participants generate by default.
    pub fn defaults(&self) -> RuntimeConfig {
        todo!()
    }

    /// Whom a selector finds.
    pub fn find(&self, selector: &Selector, now: u64) -> Available {
        todo!()
    }

    /// Takes a participant in, or changes one that is in already. Tells watchers. Blocks on the disk.
    ///
    /// An id that is taken is changed only by who shows its session's token, or who came from the
    /// same address; or when its participant has not been connected for 30 s.
    ///
    /// # Errors
    /// [`RoomError`] when it cannot be as it is asked for, the room is full, or the id is somebody
    /// else's.
    pub fn join(&self, joining: Joining, from: IpAddr, now: u64) -> Result<Joined, RoomError> {
        todo!()
    }

    /// Lets a participant go and ends its connection. May do so: who shows its session's token or
    /// the host's, or, of a participant that has never shown its token, who is at the address that
    /// it joined from. Tells watchers. Blocks on the disk.
    ///
    /// # Errors
    /// [`RoomError`] when there is none, or this one may not.
    pub fn leave(&self, id: &str, shown: Option<&str>, from: IpAddr) -> Result<(), RoomError> {
        todo!()
    }

    /// A participant is there. Its status now.
    ///
    /// # Errors
    /// [`RoomError::NoParticipant`].
    pub fn heartbeat(&self, id: &str, now: u64) -> Result<Status, RoomError> {
        todo!()
    }

    /// A token for a tunnel of this participant, good once, within 60 s.
    ///
    /// # Errors
    /// [`RoomError::NoParticipant`].
    pub fn tunnel_token(&self, id: &str, now: u64) -> Result<Secret, RoomError> {
        todo!()
    }

    /// Uses up a tunnel's token.
    ///
    /// # Errors
    /// [`RoomError`] when there is no such participant, or its token is not good.
    pub fn redeem(&self, id: &str, token: &str, now: u64) -> Result<(), RoomError> {
        todo!()
    }

    /// A participant is connected as this provider, until what is returned is dropped. An older
    /// connection of it ends. Tells watchers.
    ///
    /// # Errors
    /// [`RoomError::NoParticipant`].
    pub fn connect(self: &Arc<Self>, id: &str, provider: ProviderId, now: u64) -> Result<Connection, RoomError> {
        todo!()
    }

    /// Whether a text is the host's token.
    pub fn is_host(&self, shown: Option<&str>) -> bool {
        todo!()
    }

    /// Changes it. Hashes the password and writes to the disk: blocks. Tells watchers.
    ///
    /// # Errors
    /// [`RoomError`] when the token is not the host's, or it cannot be as it is asked for.
    pub fn change(&self, change: ChangeRoom, shown: Option<&str>) -> Result<RoomSummary, RoomError> {
        todo!()
    }

    /// What happens in it from now on, in this form; or from after the event of this id on, as far as
    /// it is kept.
    pub fn subscribe(&self, form: Form, after: Option<u64>) -> Subscription {
        todo!()
    }

    /// Tells watchers something, as a named event, as a message of the spec, or as both.
    pub fn tell(&self, event: Option<RoomEvent>, message: Option<ServerMessage>, now: u64) {
        todo!()
    }

    /// A job of the room was given to a provider. Tells watchers.
    pub fn started(&self, job: &JobStarted, now: u64) {
        todo!()
    }

    /// A job of the room ended. Tells watchers.
    pub fn ended(&self, job: &JobEnded, now: u64) {
        todo!()
    }

    /// The participant that has a job now.
    pub fn holder(&self, job: base::JobId) -> Option<String> {
        todo!()
    }

    /// Until the room is closed.
    pub async fn closed(&self) {
        todo!()
    }
}
