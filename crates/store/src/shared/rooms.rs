//! Rooms: in the database alone. While it is away, rooms go on in the memory of their homes.

use base::{ParticipantId, RoomId};

use super::SharedStore;
use crate::{Changes, ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse, StoreError};

impl SharedStore {
    /// The changes of the rooms by other servers since the last call.
    ///
    /// # Errors
    /// When the database is away.
    pub fn changed_rooms(&self) -> Result<Changes<RoomRecord>, StoreError> {
        let since = self.seen().rooms;
        let (changes, revision) = self.note(self.database.changed_rooms(since))?;
        self.seen().rooms = Some(revision);
        Ok(changes)
    }
}

impl RoomStore for SharedStore {
    fn load_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        self.note(self.database.load_rooms())
    }

    fn load_participants(&self) -> Result<Vec<ParticipantRecord>, StoreError> {
        self.note(self.database.load_participants())
    }

    fn load_participants_of(&self, room: &RoomId) -> Result<Vec<ParticipantRecord>, StoreError> {
        self.note(self.database.load_participants_of(room))
    }

    fn find_room(&self, name: &str) -> Result<Option<RoomRecord>, StoreError> {
        self.note(self.database.find_room(name))
    }

    fn room_uses(&self) -> Result<Vec<RoomUse>, StoreError> {
        self.note(self.database.room_uses())
    }

    fn save_room(&self, room: &RoomRecord) -> Result<(), StoreError> {
        self.note(self.database.save_room(room))
    }

    fn change_room(&self, room: &RoomRecord) -> Result<bool, StoreError> {
        self.note(self.database.change_room(room))
    }

    fn claim_room(
        &self,
        id: &RoomId,
        epoch: u64,
        home: &RoomHome,
    ) -> Result<Option<RoomRecord>, StoreError> {
        self.note(self.database.claim_room(id, epoch, home))
    }

    fn touch_rooms(&self, used: &[(RoomId, u64)]) -> Result<(), StoreError> {
        self.note(self.database.touch_rooms(used))
    }

    fn forget_room(&self, id: &RoomId) -> Result<(), StoreError> {
        self.note(self.database.forget_room(id))
    }

    fn save_participant(&self, participant: &ParticipantRecord) -> Result<(), StoreError> {
        self.note(self.database.save_participant(participant))
    }

    fn forget_participant(&self, room: &RoomId, id: &ParticipantId) -> Result<(), StoreError> {
        self.note(self.database.forget_participant(room, id))
    }
}
