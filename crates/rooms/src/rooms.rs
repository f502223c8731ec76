//! All rooms of a server.

use std::{net::IpAddr, sync::Arc, time::Duration};

use base::{KeyId, RoomId, Scope, Secret};
use protocol::room::RuntimeConfig;
use store::{RoomStore, StoreError};

use crate::{
    error::{Refused, RoomError},
    events::Subscription,
    room::Room,
};

/// How rooms are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A room that nobody uses for so long ends, unless it was made with a time of its own.
    pub idle: Duration,
}

/// A room to be made.
#[derive(Debug, Clone, Default)]
pub struct NewRoom {
    /// What to call it.
    pub name: String,
    /// What joining and using it need.
    pub password: Option<Secret>,
    /// How its participants generate by default.
    pub defaults: Option<RuntimeConfig>,
    /// Whether it is listed for everybody.
    pub public: bool,
    /// After how long without use it ends; `None`: as the server's settings say.
    pub idle: Option<Duration>,
    /// The key that makes it.
    pub owner: Option<KeyId>,
}

/// A room that was made.
pub struct Created {
    /// The room.
    pub room: Arc<Room>,
    /// What closing and changing it need; told here, and kept nowhere.
    pub host_token: Secret,
}

/// All rooms of a server; clones share them.
#[derive(Clone)]
pub struct Rooms(Arc<Inner>);

struct Inner {}

impl Rooms {
    /// The rooms kept in `store`. `now`, here and everywhere, is in milliseconds since 1970.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open(
        store: Arc<dyn RoomStore>,
        settings: Settings,
        now: u64,
    ) -> Result<Self, StoreError> {
        let _ = (store, settings, now);
        Ok(Self(Arc::new(Inner {})))
    }

    /// Makes a room, with two codes that no other room has. Hashes the password and writes to the
    /// disk: blocks.
    ///
    /// # Errors
    /// [`RoomError`] when it cannot be as it is asked for, there are too many, or it cannot be
    /// written.
    pub fn create(&self, new: NewRoom, now: u64) -> Result<Created, RoomError> {
        todo!()
    }

    /// The room of a code, of either sort and in whatever case, for somebody at this address.
    ///
    /// # Errors
    /// [`Refused::Unknown`], and after ten of those within a minute [`Refused::TooMany`].
    pub fn find(&self, code: &str, from: IpAddr) -> Result<Arc<Room>, Refused> {
        todo!()
    }

    /// The same, for somebody who shows this password. Wrong ones are counted as unknown codes are.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn enter(
        &self,
        code: &str,
        password: Option<&str>,
        from: IpAddr,
    ) -> Result<Arc<Room>, Refused> {
        todo!()
    }

    /// The room of an id.
    pub fn get(&self, id: &str) -> Option<Arc<Room>> {
        todo!()
    }

    /// The room of a scope.
    pub fn of_scope(&self, scope: &Scope) -> Option<Arc<Room>> {
        self.get(scope.room_id()?)
    }

    /// All rooms, the oldest first.
    pub fn list(&self) -> Vec<Arc<Room>> {
        todo!()
    }

    /// What happens in all rooms that `may_see` says yes to, as the spec's messages; from after the
    /// event of this id on, as far as it is kept.
    pub fn subscribe(
        &self,
        may_see: impl Fn(&Room) -> bool + Send + Sync + 'static,
        after: Option<u64>,
    ) -> Subscription {
        todo!()
    }

    /// Ends rooms that nobody uses, marks participants that were not heard of for 30 s, forgets
    /// those that were gone for a day, and writes when rooms were last used. Called every 10 s.
    /// Blocks on the disk.
    pub fn sweep(&self, now: u64) {
        todo!()
    }

    /// Ends a room: its participants' connections and its streams of events end, its jobs fail.
    /// Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be written: then the room is there again after a restart.
    pub fn close(&self, id: &RoomId, reason: &str) -> Result<(), RoomError> {
        todo!()
    }

    /// Participants with an endpoint that the server is to call, and that nobody calls yet. Whoever
    /// takes one says so with [`Room::connect`].
    pub fn unserved_endpoints(&self) -> Vec<(Arc<Room>, String)> {
        todo!()
    }

    /// Waits until there may be more of [`Rooms::unserved_endpoints`].
    pub async fn endpoint_joined(&self) {
        todo!()
    }
}
