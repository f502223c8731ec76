//! Rooms and their participants.

use base::{KeyId, ParticipantId, RoomId};

use crate::{KeyDigest, StoreError};

/// A stored room. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomRecord {
    /// Its id.
    pub id: RoomId,
    /// Its six-character code, in capitals.
    pub short_code: String,
    /// Its spoken code, such as `swift-eagle-42`, in small letters.
    pub spoken_code: String,
    /// Its name.
    pub name: String,
    /// The id of its host; it has no meaning here.
    pub host_id: String,
    /// The SHA-256 of the host's token.
    pub host_token: KeyDigest,
    /// The password's hash, in PHC form.
    pub password: Option<String>,
    /// The default settings of generation, as JSON.
    pub defaults: Option<String>,
    /// Whether it is listed publicly.
    pub public: bool,
    /// The key that created it.
    pub owner: Option<KeyId>,
    /// It ends after this many milliseconds without use.
    pub idle_ms: u64,
    /// When it was created.
    pub created: u64,
    /// When it was last used.
    pub used: u64,
    /// The server that orders its events, among servers that act as one.
    pub home: RoomHome,
    /// How often it was given a home; 0 where servers do not act as one.
    pub epoch: u64,
}

/// The server that orders a room's events, among servers that act as one. Empty where they do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomHome {
    /// The server's name.
    pub server: String,
    /// Tells one start of that server from another.
    pub start: String,
}

/// The use of a room, without the rest of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomUse {
    /// The room.
    pub room: RoomId,
    /// When it was last used, in milliseconds since 1970.
    pub used: u64,
    /// How many participants are stored.
    pub participants: u32,
}

/// A stored participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParticipantRecord {
    /// Its room.
    pub room: RoomId,
    /// Its id in the room.
    pub id: ParticipantId,
    /// The SHA-256 of the token that proves later requests as its own.
    pub session: KeyDigest,
    /// Everything else, as JSON of the `rooms` crate.
    pub json: String,
}

/// Where rooms are kept.
pub trait RoomStore: Send + Sync {
    /// All rooms, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_rooms(&self) -> Result<Vec<RoomRecord>, StoreError>;

    /// All participants of all rooms.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_participants(&self) -> Result<Vec<ParticipantRecord>, StoreError>;

    /// All participants of one room.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_participants_of(&self, room: &RoomId) -> Result<Vec<ParticipantRecord>, StoreError>;

    /// The room with this id, or with this code in its normal form.
    ///
    /// # Errors
    /// When it cannot be read.
    fn find_room(&self, name: &str) -> Result<Option<RoomRecord>, StoreError>;

    /// When each room was last used, and how many participants it has.
    ///
    /// # Errors
    /// When it cannot be read.
    fn room_uses(&self) -> Result<Vec<RoomUse>, StoreError>;

    /// Stores a room, or replaces the one with its id.
    ///
    /// # Errors
    /// When it cannot be written, or another room has one of its codes; then nothing is changed.
    fn save_room(&self, room: &RoomRecord) -> Result<(), StoreError>;

    /// Replaces the room with this id and this epoch. Returns whether there is one: another server may have claimed
    /// the room, or closed it.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn change_room(&self, room: &RoomRecord) -> Result<bool, StoreError>;

    /// Gives a room of this epoch a home, which begins the next epoch. Returns the changed room; `None` when there is
    /// no such room, or its epoch is another one. Of several servers that claim a room of one epoch, one gets it.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn claim_room(
        &self,
        id: &RoomId,
        epoch: u64,
        home: &RoomHome,
    ) -> Result<Option<RoomRecord>, StoreError>;

    /// Stores when rooms were last used. Unknown rooms are skipped.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn touch_rooms(&self, used: &[(RoomId, u64)]) -> Result<(), StoreError>;

    /// Deletes a room and its participants. An unknown one is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_room(&self, id: &RoomId) -> Result<(), StoreError>;

    /// Stores a participant, or replaces the one with its id in its room.
    ///
    /// # Errors
    /// When it cannot be written, or its room is unknown; then nothing is changed.
    fn save_participant(&self, participant: &ParticipantRecord) -> Result<(), StoreError>;

    /// Deletes a participant. An unknown one is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_participant(&self, room: &RoomId, id: &ParticipantId) -> Result<(), StoreError>;
}
