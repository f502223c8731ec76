//! Rooms and participants in memory.

use base::{ParticipantId, RoomId};

use super::{VolatileStore, lock};
use crate::{ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse, StoreError};

impl RoomStore for VolatileStore {
    fn load_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        let mut rooms = lock(&self.rooms).clone();
        rooms.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(rooms)
    }

    fn load_participants(&self) -> Result<Vec<ParticipantRecord>, StoreError> {
        Ok(lock(&self.participants).clone())
    }

    fn load_participants_of(&self, room: &RoomId) -> Result<Vec<ParticipantRecord>, StoreError> {
        let all = lock(&self.participants);
        Ok(all.iter().filter(|participant| participant.room == *room).cloned().collect())
    }

    fn find_room(&self, name: &str) -> Result<Option<RoomRecord>, StoreError> {
        let is_it = |room: &&RoomRecord| {
            room.id.as_str() == name || room.short_code == name || room.spoken_code == name
        };
        Ok(lock(&self.rooms).iter().find(is_it).cloned())
    }

    fn room_uses(&self) -> Result<Vec<RoomUse>, StoreError> {
        let participants = lock(&self.participants);
        let of = |room: &RoomRecord| {
            let own = participants.iter().filter(|participant| participant.room == room.id);
            let participants = u32::try_from(own.count()).unwrap_or(u32::MAX);
            RoomUse { room: room.id.clone(), used: room.used, participants }
        };
        Ok(lock(&self.rooms).iter().map(of).collect())
    }

    fn save_room(&self, room: &RoomRecord) -> Result<(), StoreError> {
        let mut rooms = self.writes(&self.rooms)?;
        let has_its_code = |record: &RoomRecord| {
            record.short_code == room.short_code || record.spoken_code == room.spoken_code
        };
        if rooms.iter().any(|record| record.id != room.id && has_its_code(record)) {
            return Err(StoreError::of("memory", rusqlite::Error::InvalidQuery));
        }
        rooms.retain(|record| record.id != room.id);
        rooms.push(room.clone());
        Ok(())
    }

    fn change_room(&self, room: &RoomRecord) -> Result<bool, StoreError> {
        let is_it = |record: &RoomRecord| record.id == room.id && record.epoch == room.epoch;
        let is_there = lock(&self.rooms).iter().any(is_it);
        if is_there {
            self.save_room(room)?;
        }
        Ok(is_there)
    }

    fn claim_room(
        &self,
        id: &RoomId,
        epoch: u64,
        home: &RoomHome,
    ) -> Result<Option<RoomRecord>, StoreError> {
        let mut rooms = self.writes(&self.rooms)?;
        let claimed = rooms.iter_mut().find(|room| room.id == *id && room.epoch == epoch);
        Ok(claimed.map(|room| {
            (room.home, room.epoch) = (home.clone(), epoch + 1);
            room.clone()
        }))
    }

    fn touch_rooms(&self, used: &[(RoomId, u64)]) -> Result<(), StoreError> {
        let mut rooms = self.writes(&self.rooms)?;
        for (id, at) in used {
            rooms.iter_mut().filter(|room| room.id == *id).for_each(|room| room.used = *at);
        }
        Ok(())
    }

    fn forget_room(&self, id: &RoomId) -> Result<(), StoreError> {
        self.writes(&self.rooms)?.retain(|room| room.id != *id);
        self.writes(&self.participants)?.retain(|participant| participant.room != *id);
        Ok(())
    }

    fn save_participant(&self, participant: &ParticipantRecord) -> Result<(), StoreError> {
        if !lock(&self.rooms).iter().any(|room| room.id == participant.room) {
            return Err(StoreError::of("memory", rusqlite::Error::InvalidQuery));
        }
        self.forget_participant(&participant.room, &participant.id)?;
        self.writes(&self.participants)?.push(participant.clone());
        Ok(())
    }

    fn forget_participant(&self, room: &RoomId, id: &ParticipantId) -> Result<(), StoreError> {
        let is_it = |record: &ParticipantRecord| record.room == *room && record.id == *id;
        self.writes(&self.participants)?.retain(|record| !is_it(record));
        Ok(())
    }
}
