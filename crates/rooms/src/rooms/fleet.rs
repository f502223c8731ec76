//! The rooms of servers that act as one: each is at its home, which orders its events. The shared store says which
//! server that is; a server gets a room by a claim there, which one of several gets, and which begins an epoch.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use base::{RoomId, Scope};
use store::{Changes, RoomHome, RoomRecord, RoomStore, StoreError};

use super::{
    Rooms, Settings,
    directory::Directory,
    finding::{Absent, Turns},
    house,
    index::{Index, kept_members, kept_room},
    known::KnownRoom,
    warn_if_failed,
};
use crate::{
    codes::{self, Code},
    room::Room,
};

/// How long the last known use of other servers' rooms counts, in milliseconds.
const USES_KNOWN: u64 = 1_000;

/// The place of a room.
pub enum Place {
    /// At this server.
    Here(Arc<Room>),
    /// At another one.
    There(Arc<KnownRoom>),
    /// There is no such room, as far as this server knows.
    Unknown,
}

/// The rooms of the other servers.
pub(super) struct Fleet {
    directory: RwLock<Directory>,
    pub(super) absent: Mutex<Absent>,
    pub(super) turns: Turns,
    /// When the use of the other servers' rooms was last asked for.
    uses_requested: Mutex<Option<u64>>,
}

impl Fleet {
    fn new() -> Self {
        let (absent, uses_requested) = (Mutex::default(), Mutex::default());
        Self { directory: RwLock::default(), absent, turns: Turns::default(), uses_requested }
    }

    pub(super) fn count(&self) -> usize {
        self.read(Directory::len)
    }

    pub(super) fn of_code(&self, code: &Code) -> Option<Arc<KnownRoom>> {
        self.read(|directory| directory.of_code(code))
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<KnownRoom>> {
        let code = codes::normalise(name);
        self.read(|directory| {
            let by_code = || directory.of_code(code.as_ref()?);
            directory.get(name).or_else(by_code)
        })
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Directory) -> T) -> T {
        read(&self.directory.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn write<T>(&self, write: impl FnOnce(&mut Directory) -> T) -> T {
        write(&mut self.directory.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Rooms {
    /// The rooms of a server that acts as one with others, with which it shares `store`. There are none yet: after
    /// [`Rooms::set_own`], the first [`Rooms::take_over`] brings them.
    pub fn open_in_fleet(store: Arc<dyn RoomStore>, settings: Settings, now: u64) -> Self {
        Self::with(house(store, now), settings, Index::default(), Some(Fleet::new()))
    }

    /// Sets which server this is. Called once, before anything else.
    pub fn set_own(&self, own: RoomHome) {
        let _set_before = self.0.house.own.set(own);
    }

    /// The place of the room with this id or code. Quick: it reads only memory.
    pub fn place(&self, name: &str) -> Place {
        let here = self.get(name).or_else(|| self.0.room_of(name));
        let there = || self.0.fleet.as_ref()?.find(name);
        match here {
            Some(room) => Place::Here(room),
            None => there().map_or(Place::Unknown, Place::There),
        }
    }

    /// The rooms of the other servers, the oldest first.
    pub fn list_elsewhere(&self) -> Vec<Arc<KnownRoom>> {
        let Some(fleet) = &self.0.fleet else { return Vec::new() };
        let mut rooms: Vec<_> = fleet.read(|directory| directory.all().cloned().collect());
        // For a moment a room is in both lists, while it comes here.
        rooms.retain(|room| self.get(room.id().as_str()).is_none());
        rooms.sort_unstable_by(|a, b| (a.created(), a.id()).cmp(&(b.created(), b.id())));
        rooms
    }

    /// Asks the store how the rooms of the other servers are used, unless it was asked within the last second. Blocks.
    pub fn refresh_uses(&self) {
        let Some(fleet) = &self.0.fleet else { return };
        let now = self.0.house.clock.now();
        {
            let mut last = fleet.uses_requested.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| now < last.saturating_add(USES_KNOWN)) {
                return;
            }
            // Noted before the answer: of many requests at once, one asks the store.
            *last = Some(now);
        }
        match self.0.house.store.room_uses() {
            Ok(uses) => fleet.read(|directory| directory.note_uses(&uses)),
            Err(error) => tracing::debug!(%error, "how rooms are used is not known"),
        }
    }

    /// Takes over changed records of rooms. Those whose home is this server and that are not here begin an epoch
    /// here: at a start these are all. Returns the scopes of rooms that were closed elsewhere: the scheduler has to end
    /// their jobs. Blocks.
    pub fn take_over(&self, changes: Changes<RoomRecord>, now: u64) -> Vec<Scope> {
        let Some(fleet) = &self.0.fleet else { return Vec::new() };
        self.0.house.clock.hear(now);
        let mut closed = Vec::new();
        if changes.whole {
            let there: HashSet<_> =
                changes.records.iter().map(|record| record.id.clone()).collect();
            fleet.write(|directory| directory.keep(&there));
            // Only a whole list shows which rooms are missing.
            closed.extend(self.end_closed(&there));
        }
        for record in changes.records {
            self.take(fleet, record, now);
        }
        closed
    }

    fn take(&self, fleet: &Fleet, record: RoomRecord, now: u64) {
        // A room that is just being made here gets into the index before this.
        let making = self.making();
        let here = self.get(record.id.as_str());
        let is_own = record.home.server == self.0.house.home().server;
        if here.is_some_and(|room| room.epoch() >= record.epoch) {
            return;
        }
        let (id, epoch) = (record.id.clone(), record.epoch);
        fleet.write(|directory| directory.insert(record));
        // Adopting takes the same lock.
        drop(making);
        if is_own {
            warn_if_failed(self.adopt(&id, epoch, now).map(drop));
        }
    }

    /// Ends the rooms here that are not among these, unless they were made meanwhile.
    fn end_closed(&self, there: &HashSet<RoomId>) -> Vec<Scope> {
        let missing = self.list().into_iter().filter(|room| !there.contains(room.id()));
        let is_closed =
            // The list is older than this question: a room may have been made since.
            |room: &Arc<Room>| matches!(self.0.house.store.find_room(room.id().as_str()), Ok(None));
        let closed = missing.filter(is_closed);
        closed.map(|room| self.end_here(&room)).collect()
    }

    fn end_here(&self, room: &Room) -> Scope {
        // Out of the index first: no request may enter a room that ends.
        self.0.write(|index| index.remove(room.id()));
        room.end("it was closed at another server");
        tracing::info!(room = %room.id(), "a room was closed at another server");
        room.scope()
    }

    /// Makes this server the home of a room of this epoch, which begins the next one. Returns whether it is: another
    /// server may have been first. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn adopt(&self, id: &RoomId, epoch: u64, now: u64) -> Result<bool, StoreError> {
        let Some(fleet) = &self.0.fleet else { return Ok(false) };
        let _making = self.making();
        if self.get(id.as_str()).is_some() {
            return Ok(false);
        }
        let house = &self.0.house;
        // One statement in the store decides: of several servers that want the room, one gets it.
        let Some(record) = house.store.claim_room(id, epoch, &house.home())? else {
            return Ok(false);
        };
        let participants = house.store.load_participants_of(id)?;
        let room = Arc::new(kept_room(house, record, now));
        for (_, member) in kept_members(&participants, now) {
            room.add_stored(member);
        }
        self.0.write(|index| index.insert(&room));
        // After it is in the index, so that no request in between finds it nowhere.
        fleet.write(|directory| drop(directory.remove(id)));
        tracing::info!(room = %id, epoch = room.epoch(), "this server is a room's home now");
        house.uncalled.notify_one();
        Ok(true)
    }

    /// The home and the epoch of each room, as far as this server knows.
    pub fn homes(&self) -> Vec<(RoomId, RoomHome, u64)> {
        let Some(fleet) = &self.0.fleet else { return Vec::new() };
        let of_known =
            |known: &Arc<KnownRoom>| (known.id().clone(), (known.home().clone(), known.epoch()));
        let mut homes: HashMap<_, _> =
            fleet.read(|directory| directory.all().map(of_known).collect());
        for room in self.list() {
            let own = (self.0.house.home(), room.epoch());
            let later = homes.entry(room.id().clone()).or_insert_with(|| own.clone());
            if later.1 < own.1 {
                *later = own;
            }
        }
        homes.into_iter().map(|(id, (home, epoch))| (id, home, epoch)).collect()
    }

    /// Gives up a room that another server has taken over: its clients and participants come back, and find it there.
    /// Returns its scope: the scheduler has to end its jobs. `None` when the room is not here, or nobody has taken it
    /// over.
    pub fn give_way(&self, id: &RoomId) -> Option<Scope> {
        let (fleet, room) = (self.0.fleet.as_ref()?, self.get(id.as_str())?);
        let known = fleet.read(|directory| directory.get(id.as_str()))?;
        (known.epoch() > room.epoch()).then(|| self.release(&room))
    }

    fn release(&self, room: &Room) -> Scope {
        self.0.write(|index| index.remove(room.id()));
        room.release();
        tracing::info!(room = %room.id(), "another server is this room's home now");
        room.scope()
    }

    /// Whether another server has taken over a room that ends here for want of use: then it does not end there.
    pub(super) fn is_elsewhere(&self, room: &Room) -> bool {
        let Some(fleet) = &self.0.fleet else { return false };
        let stored = self.0.house.store.find_room(room.id().as_str());
        let Ok(Some(record)) = stored else { return false };
        if record.epoch <= room.epoch() {
            return false;
        }
        fleet.write(|directory| directory.insert(record));
        self.release(room);
        true
    }

    pub(super) fn fleet(&self) -> Option<&Fleet> {
        self.0.fleet.as_ref()
    }

    pub(super) fn absent<'a>(&self, fleet: &'a Fleet) -> MutexGuard<'a, Absent> {
        fleet.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
