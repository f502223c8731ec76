//! All rooms, by their ids and codes.

use std::{collections::HashMap, sync::Arc};

use base::RoomId;
use store::{ParticipantRecord, RoomRecord, StoreError};

use super::MAX_ROOMS;
use crate::{
    codes::{self, Code},
    member::Member,
    password::Password,
    room::{House, Room},
};

/// No room expires for this long after a restart, in milliseconds.
const AFTER_RESTART: u64 = 3_600_000;

/// All rooms, by their ids and codes.
#[derive(Default)]
pub(super) struct Index {
    by_id: HashMap<RoomId, Arc<Room>>,
    by_code: HashMap<Code, Arc<Room>>,
    /// The creation time of the room added last.
    last_made: u64,
}

impl Index {
    /// Loads all stored rooms.
    pub(super) fn load(house: &Arc<House>, now: u64) -> Result<Self, StoreError> {
        let mut index = Self::default();
        for record in house.store.load_rooms()? {
            index.insert(&Arc::new(kept_room(house, record, now)));
        }
        for (room, member) in kept_members(&house.store.load_participants()?, now) {
            if let Some(room) = index.by_id.get(&room) {
                room.add_stored(member);
            }
        }
        Ok(index)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Room>> {
        self.by_id.get(id).cloned()
    }

    pub(super) fn of_code(&self, code: &Code) -> Option<Arc<Room>> {
        self.by_code.get(code).cloned()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Room>> {
        self.by_id.values()
    }

    pub(super) fn insert(&mut self, room: &Arc<Room>) {
        for code in codes_of(room.short_code(), room.spoken_code()) {
            self.by_code.insert(code, Arc::clone(room));
        }
        self.last_made = room.created();
        self.by_id.insert(room.id().clone(), Arc::clone(room));
    }

    pub(super) fn remove(&mut self, id: &RoomId) -> Option<Arc<Room>> {
        let room = self.by_id.remove(id)?;
        for code in codes_of(room.short_code(), room.spoken_code()) {
            self.by_code.remove(&code);
        }
        Some(room)
    }

    /// The creation time for a new room. Two rooms of the same millisecond get different times, so
    /// that rooms are listed in the order of their creation. A clock that was set back is believed:
    /// a burst of rooms is ahead of the clock by at most the largest number of rooms.
    pub(super) fn moment(&self, now: u64) -> u64 {
        let ahead = now..now.saturating_add(MAX_ROOMS as u64);
        if ahead.contains(&self.last_made) { self.last_made + 1 } else { now }
    }

    /// Generates a code that no room has. There are millions of codes and at most thousands of
    /// rooms: the first is nearly always free.
    pub(super) fn free(
        &self,
        mut make: impl FnMut() -> String,
        is_elsewhere: impl Fn(&Code) -> bool,
    ) -> String {
        loop {
            let code = make();
            let taken = |code: &Code| self.by_code.contains_key(code) || is_elsewhere(code);
            if codes::normalise(&code).is_some_and(|code| !taken(&code)) {
                return code;
            }
        }
    }
}

/// A room's codes, in their normal form.
pub(super) fn codes_of(short: &str, spoken: &str) -> impl Iterator<Item = Code> + use<> {
    [short, spoken].map(codes::normalise).into_iter().flatten()
}

/// A stored room, without its participants.
pub(super) fn kept_room(house: &Arc<House>, mut record: RoomRecord, now: u64) -> Room {
    // The server may have been off for long, and its members could not come.
    let least = now.saturating_sub(record.idle_ms.saturating_sub(AFTER_RESTART));
    record.used = record.used.max(least);
    let password = record.password.as_deref().map(Password::stored);
    Room::new(house, record, password)
}

/// Stored participants, in the order in which they joined.
pub(super) fn kept_members(records: &[ParticipantRecord], now: u64) -> Vec<(RoomId, Member)> {
    let load = |record: &ParticipantRecord| {
        let member = Member::load(record, now);
        if member.is_none() {
            let ParticipantRecord { room, id, .. } = record;
            tracing::warn!(%room, participant = %id, "what was kept of a participant cannot be read");
        }
        member.map(|member| (record.room.clone(), member))
    };
    let mut members: Vec<_> = records.iter().filter_map(load).collect();
    members.sort_by(|(_, a), (_, b)| (a.stored.joined_at, &a.id).cmp(&(b.stored.joined_at, &b.id)));
    members
}
