//! Stored responses, conversations and rooms: they are in the database alone. While it is away, rooms go on in the
//! memory of the servers that are their homes.

use base::{KeyId, ParticipantId, RoomId};

use super::SharedStore;
use crate::{
    Changes, ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse, StoreError,
    responses::{
        ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
    },
};

in_database_alone! { ResponseStore:
    save_response(response: &ResponseRecord, most: KeptBounds) -> ();
    find_response(owner: &KeyId, id: &str) -> Option<ResponseRecord>;
    response_chain(owner: &KeyId, id: &str, most: ChainBounds) -> Vec<ResponseRecord>;
    change_running(owner: &KeyId, id: &str, response: Option<&str>, beat: Option<u64>) -> bool;
    lose_running() -> ();
    forget_response(owner: &KeyId, id: &str) -> bool;
    save_conversation(conversation: &ConversationRecord, items: &[ItemRecord], most: KeptBounds) -> ();
    find_conversation(owner: &KeyId, id: &str) -> Option<ConversationRecord>;
    change_conversation(owner: &KeyId, id: &str, metadata: &str) -> bool;
    forget_conversation(owner: &KeyId, id: &str) -> bool;
    items(owner: &KeyId, id: &str) -> Option<Vec<ItemRecord>>;
    add_items(owner: &KeyId, id: &str, items: &[ItemRecord], used: u64, most: KeptBounds) -> bool;
    forget_item(owner: &KeyId, id: &str, item: &str) -> bool;
    forget_kept_before(at: u64) -> u64;
    kept_owners() -> Vec<KeyId>;
    forget_kept_of(owner: &KeyId) -> u64;
}

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
