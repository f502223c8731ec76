//! All rooms of a server.
//!
//! - `entering`: entry by code, id or password
//! - `index`: rooms by their ids and codes
//!
//! Of several servers that act as one, each has the rooms whose home it is, and knows of the others:
//!
//! - `fleet`: the rooms that this server has, takes over and gives up
//! - `known`: a room of another server; `directory`: all of them, pure
//! - `finding`: rooms that were made a moment ago at another server
//! - `passing`: whether a client may have its request passed on to another server

mod directory;
mod entering;
mod finding;
mod fleet;
mod index;
mod known;
mod passing;

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use base::{KeyId, Live, RoomId, Scope, Secret};
use protocol::room::{RuntimeConfig, limits::MAX_EXPIRY_SECS, plane::CreateRoom};
use store::{RoomHome, RoomRecord, RoomStore, StoreError};
use tokio::sync::Notify;

pub use entering::Caller;
use fleet::Fleet;
pub use fleet::Place;
use index::Index;
pub use known::KnownRoom;

use crate::{
    attempts::Attempts,
    check,
    clock::Clock,
    codes::{self, Code},
    error::RoomError,
    events::{Bounds, Form, Log, Sight, Source, Subscription},
    password::{Password, Verifier},
    room::{House, Room, write_defaults},
    token,
};

/// The most rooms of a server.
const MAX_ROOMS: usize = 10_000;

/// How often codes are drawn for a new room.
const DRAWS: usize = 5;

/// The settings of rooms.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a room may be unused before it ends, unless it was created with its own time.
    pub idle: Duration,
}

/// The parameters of a new room.
#[derive(Debug, Clone, Default)]
pub struct NewRoom {
    /// Its name.
    pub name: String,
    /// Its password, if it has one.
    pub password: Option<Secret>,
    /// Its participants' default generation parameters.
    pub defaults: Option<RuntimeConfig>,
    /// Whether it is listed publicly.
    pub public: bool,
    /// It ends after this long without use; `None` for the setting of the server.
    pub idle: Option<Duration>,
    /// The key that creates it.
    pub owner: Option<KeyId>,
}

impl NewRoom {
    /// The request of a client, with the key that it has shown.
    #[must_use]
    pub fn from_request(room: CreateRoom, owner: Option<KeyId>) -> Self {
        let CreateRoom { name, password, defaults, public, expires_secs } = room;
        let (password, idle) = (password.map(Secret::from), expires_secs.map(Duration::from_secs));
        Self { name, password, defaults, public, idle, owner }
    }
}

/// A newly created room.
pub struct HostedRoom {
    /// The room.
    pub room: Arc<Room>,
    /// The host token, for changing and closing the room. Only its hash is stored.
    pub host_token: Secret,
}

/// All rooms of a server; clones share them.
///
/// Locks: creation holds one lock until the room is written and in the index. The index and the
/// count of wrong codes have a lock each, under which no other is taken.
#[derive(Clone)]
pub struct Rooms(Arc<Inner>);

struct Inner {
    house: Arc<House>,
    settings: Live<Settings>,
    index: RwLock<Index>,
    making: Mutex<()>,
    attempts: Mutex<Attempts>,
    verifier: Verifier,
    /// The rooms of other servers, if there are others.
    fleet: Option<Fleet>,
}

impl Rooms {
    /// Loads the rooms in `store`. `now`, here and everywhere, is in milliseconds since 1970.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open(
        store: Arc<dyn RoomStore>,
        settings: Settings,
        now: u64,
    ) -> Result<Self, StoreError> {
        let house = house(store, now);
        let index = Index::load(&house, now)?;
        Ok(Self::with(house, settings, index, None))
    }

    fn with(house: Arc<House>, settings: Settings, index: Index, fleet: Option<Fleet>) -> Self {
        let (making, attempts) = (Mutex::default(), Mutex::default());
        let (index, verifier) = (RwLock::new(index), Verifier::new());
        let settings = Live::new(settings);
        Self(Arc::new(Inner { house, settings, index, making, attempts, verifier, fleet }))
    }

    /// Replaces the settings. Existing rooms keep those with which they were made.
    pub fn change(&self, settings: Settings) {
        self.0.settings.set(settings);
    }

    /// Creates a room with two codes that no other room has. Hashes the password and writes to the
    /// disk: blocks.
    ///
    /// # Errors
    /// [`RoomError`] when the parameters are invalid, there are too many rooms, or the room cannot
    /// be written.
    pub fn create(&self, new: NewRoom, now: u64) -> Result<HostedRoom, RoomError> {
        self.0.house.clock.hear(now);
        let password = new.password.as_ref().map(Password::new).transpose()?;
        let host_token = token::new_token(token::HOST);
        let mut record = record(new, &host_token, self.0.settings.get().idle, now)?;
        record.password = password.as_ref().map(|password| password.phc().to_string());
        // From here until the room is in the index: two rooms could else draw one code.
        let making = self.making();
        self.0.save_in_place(&mut record)?;
        let room = Arc::new(Room::new(&self.0.house, record, password));
        self.0.write(|index| index.insert(&room));
        // The event goes without the lock: the next room does not wait for the watchers.
        drop(making);
        room.tell_created(now);
        tracing::info!(room = %room.id(), "a room was made");
        Ok(HostedRoom { room, host_token })
    }

    /// The room with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Room>> {
        self.0.read(|index| index.get(id))
    }

    /// The room of a scope.
    pub fn of_scope(&self, scope: &Scope) -> Option<Arc<Room>> {
        self.get(scope.room_id()?)
    }

    /// All rooms that are here, the oldest first.
    pub fn list(&self) -> Vec<Arc<Room>> {
        let mut rooms: Vec<_> = self.0.read(|index| index.all().cloned().collect());
        rooms.sort_unstable_by(|a, b| (a.created(), a.id()).cmp(&(b.created(), b.id())));
        rooms
    }

    /// Subscribes to the events of all rooms as the spec's messages, limited by `may_see`: to new
    /// events, or to all kept events after this id. `may_see` is called under a lock: it must be
    /// quick, and must not call rooms.
    pub fn subscribe(
        &self,
        may_see: impl Fn(&Source) -> Sight + Send + Sync + 'static,
        after: Option<u64>,
    ) -> Subscription {
        self.0.house.log.subscribe_where(Form::Messages, after, may_see)
    }

    /// Ends unused rooms, marks participants that were silent for 30 s, forgets those that were
    /// gone for a day, and writes when rooms were last used. Ends are judged by `aged`, a time that a
    /// wrong clock does not move. Called every 10 s. Blocks on the disk. Returns the scopes of the rooms that it
    /// has ended.
    pub fn sweep(&self, now: u64, aged: u64) -> Vec<Scope> {
        self.0.house.clock.hear(now);
        let rooms = self.list();
        let mut ended = Vec::new();
        for room in &rooms {
            warn_if_failed(room.sweep(now, aged));
            if !room.is_expired(aged) {
                continue;
            }
            ended.push(room.scope());
            // Its new home decides when it ends, by the use that it knows of.
            if self.is_elsewhere(room) {
                continue;
            }
            if let Err(error) = self.close(room.id(), "nobody has used it for long") {
                tracing::warn!(room = %room.id(), %error, "an unused room is there again after a restart");
            }
        }
        warn_if_failed(self.0.keep_uses(&rooms));
        ended
    }

    /// Ends a room: its participants' connections and its streams of events end. The scheduler has
    /// to end its jobs. Blocks on the disk.
    ///
    /// # Errors
    /// When the deletion cannot be written: then the room comes back after a restart.
    pub fn close(&self, id: &RoomId, reason: &str) -> Result<(), RoomError> {
        let Some(room) = self.0.write(|index| index.remove(id)) else { return Ok(()) };
        tracing::info!(room = %id, reason, "a room was closed");
        Ok(room.close(reason)?)
    }

    /// Participants whose endpoint the server must call and does not call yet. A caller
    /// claims one with [`Room::connect`].
    pub fn unserved_endpoints(&self) -> Vec<(Arc<Room>, String)> {
        let of = |room: Arc<Room>| {
            let uncalled = room.uncalled();
            uncalled.into_iter().map(move |id| (Arc::clone(&room), id))
        };
        self.list().into_iter().flat_map(of).collect()
    }

    /// Waits until there may be more [`Rooms::unserved_endpoints`]. For a single waiter: a second
    /// one would take the first one's wake-up. Cancel safe.
    pub async fn endpoint_joined(&self) {
        self.0.house.uncalled.notified().await;
    }

    fn making(&self) -> MutexGuard<'_, ()> {
        self.0.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.0.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn room_of(&self, code: &str) -> Option<Arc<Room>> {
        let code = codes::normalise(code)?;
        self.read(|index| index.of_code(&code))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Index) -> T) -> T {
        write(&mut self.index.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a new room, with codes that no other has. Another server may take one of them at the same time: then others
    /// are drawn.
    fn save_in_place(&self, record: &mut RoomRecord) -> Result<(), RoomError> {
        let mut saved = Ok(());
        for _ in 0..DRAWS {
            self.find_place(record)?;
            saved = self.house.store.save_room(record);
            // After a used code another draw may succeed; any other failure would be the same again.
            if !matches!(saved, Err(StoreError::Refused { .. })) {
                break;
            }
        }
        Ok(saved?)
    }

    /// Finds a creation time and two free codes for a room.
    fn find_place(&self, record: &mut RoomRecord) -> Result<(), RoomError> {
        let elsewhere = self.fleet.as_ref().map_or(0, Fleet::count);
        let is_elsewhere =
            |code: &Code| self.fleet.as_ref().is_some_and(|fleet| fleet.of_code(code).is_some());
        self.read(|index| {
            if index.len() + elsewhere >= MAX_ROOMS {
                let words = format!("this server has {MAX_ROOMS} rooms: close one first");
                return Err(RoomError::TooMany(words));
            }
            let mut random = rand::rng();
            record.created = index.moment(record.created);
            record.short_code = index.free(|| codes::short(&mut random), is_elsewhere);
            record.spoken_code = index.free(|| codes::spoken(&mut random), is_elsewhere);
            (record.home, record.epoch) = match &self.fleet {
                Some(_) => (self.house.home(), 1),
                None => (RoomHome::default(), 0),
            };
            Ok(())
        })
    }

    /// Writes when rooms were last used.
    fn keep_uses(&self, rooms: &[Arc<Room>]) -> Result<(), StoreError> {
        let used = rooms.iter().filter_map(|room| Some((room, room.use_to_keep()?)));
        let used: Vec<_> = used.collect();
        if used.is_empty() {
            return Ok(());
        }
        let records: Vec<_> = used.iter().map(|(room, at)| (room.id().clone(), *at)).collect();
        self.house.store.touch_rooms(&records)?;
        // Only after the write: what failed is written at the next sweep.
        used.iter().for_each(|(room, at)| room.use_is_kept(*at));
        Ok(())
    }
}

/// The record of a new room; its codes and its password are filled in later.
fn record(
    new: NewRoom,
    host_token: &Secret,
    idle: Duration,
    now: u64,
) -> Result<RoomRecord, RoomError> {
    let defaults = new.defaults.unwrap_or_default();
    check::config("defaults", &defaults)?;
    Ok(RoomRecord {
        id: token::room_id().into(),
        short_code: String::new(),
        spoken_code: String::new(),
        name: check::room_name(&new.name)?,
        host_id: token::uuid(),
        host_token: token::digest(host_token.expose()),
        password: None,
        defaults: write_defaults(&defaults),
        public: new.public,
        owner: new.owner,
        idle_ms: idle_ms(new.idle.unwrap_or(idle))?,
        created: now,
        used: now,
        home: RoomHome::default(),
        epoch: 0,
    })
}

/// The state that all rooms of a server share.
fn house(store: Arc<dyn RoomStore>, now: u64) -> Arc<House> {
    let log = Log::new(Bounds::ALL_ROOMS, now);
    let (clock, uncalled) = (Clock::new(now), Notify::new());
    Arc::new(House { store, clock, log, uncalled, own: OnceLock::new() })
}

fn idle_ms(idle: Duration) -> Result<u64, RoomError> {
    let longest = Duration::from_secs(MAX_EXPIRY_SECS);
    if idle.is_zero() || idle > longest {
        let words = format!("a room ends after 1 to {MAX_EXPIRY_SECS} seconds without use");
        return Err(RoomError::Invalid(words));
    }
    Ok(base::millis(idle))
}

fn warn_if_failed(written: Result<(), StoreError>) {
    if let Err(error) = written {
        tracing::warn!(%error, "what became of rooms could not be written, and is tried again");
    }
}
