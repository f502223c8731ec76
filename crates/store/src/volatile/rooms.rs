//! Rooms and participants in memory.

use base::{ParticipantId, RoomId};

use super::{VolatileStore, lock};
use crate::{ParticipantRecord, RoomRecord, RoomStore, StoreError};

impl RoomStore for VolatileStore {
    fn load_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        let mut rooms = lock(&self.rooms).clone();
        rooms.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(rooms)
    }

    fn load_participants(&self) -> Result<Vec<ParticipantRecord>, StoreError> {
        Ok(lock(&self.participants).clone())
    }

    fn save_room(&self, room: &RoomRecord) -> Result<(), StoreError> {
        let mut rooms = self.writes(&self.rooms)?;
        let has_its_code = |kept: &RoomRecord| {
            kept.short_code == room.short_code || kept.spoken_code == room.spoken_code
        };
        if rooms.iter().any(|kept| kept.id != room.id && has_its_code(kept)) {
            return Err(StoreError::of("memory", rusqlite::Error::InvalidQuery));
        }
        rooms.retain(|kept| kept.id != room.id);
        rooms.push(room.clone());
        Ok(())
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
        let is_it = |kept: &ParticipantRecord| kept.room == *room && kept.id == *id;
        self.writes(&self.participants)?.retain(|kept| !is_it(kept));
        Ok(())
    }
}
