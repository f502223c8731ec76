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

in_database_alone! { RoomStore:
    load_rooms() -> Vec<RoomRecord>;
    load_participants() -> Vec<ParticipantRecord>;
    load_participants_of(room: &RoomId) -> Vec<ParticipantRecord>;
    find_room(name: &str) -> Option<RoomRecord>;
    room_uses() -> Vec<RoomUse>;
    save_room(room: &RoomRecord) -> ();
    change_room(room: &RoomRecord) -> bool;
    claim_room(id: &RoomId, epoch: u64, home: &RoomHome) -> Option<RoomRecord>;
    touch_rooms(used: &[(RoomId, u64)]) -> ();
    forget_room(id: &RoomId) -> ();
    save_participant(participant: &ParticipantRecord) -> ();
    forget_participant(room: &RoomId, id: &ParticipantId) -> ();
}
