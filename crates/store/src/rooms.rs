//! Rooms and their participants.

use base::{KeyId, ParticipantId, RoomId};

use crate::{KeyDigest, StoreError};

/// A room, as it is kept. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomRecord {
    /// Its id.
    pub id: RoomId,
    /// Its six-character code, in capitals.
    pub short_code: String,
    /// Its spoken code, such as `swift-eagle-42`, in small letters.
    pub spoken_code: String,
    /// What people call it.
    pub name: String,
    /// The id of whoever made it; means nothing.
    pub host_id: String,
    /// The SHA-256 of the host's token.
    pub host_token: KeyDigest,
    /// The password's hash, in PHC form.
    pub password: Option<String>,
    /// How participants generate by default, as JSON.
    pub defaults: Option<String>,
    /// Whether it is listed for everybody.
    pub public: bool,
    /// The key that made it.
    pub owner: Option<KeyId>,
    /// After how many milliseconds without use it ends.
    pub idle_ms: u64,
    /// When it was made.
    pub created: u64,
    /// When it was last used.
    pub used: u64,
}

/// A participant, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParticipantRecord {
    /// Its room.
    pub room: RoomId,
    /// Its id in the room.
    pub id: ParticipantId,
    /// The SHA-256 of what shows that a later request is its own.
    pub session: KeyDigest,
    /// All else, as JSON of the `rooms` crate.
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

    /// Keeps a room, in place of what was kept under its id.
    ///
    /// # Errors
    /// When it cannot be written, or another room has one of its codes; then nothing is changed.
    fn save_room(&self, room: &RoomRecord) -> Result<(), StoreError>;

    /// Notes when rooms were last used. Rooms that are not there are passed over.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn touch_rooms(&self, used: &[(RoomId, u64)]) -> Result<(), StoreError>;

    /// Forgets a room and its participants. One that is not there is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_room(&self, id: &RoomId) -> Result<(), StoreError>;

    /// Keeps a participant, in place of what was kept under its id in its room.
    ///
    /// # Errors
    /// When it cannot be written, or its room is not there; then nothing is changed.
    fn save_participant(&self, participant: &ParticipantRecord) -> Result<(), StoreError>;

    /// Forgets a participant. One that is not there is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_participant(&self, room: &RoomId, id: &ParticipantId) -> Result<(), StoreError>;
}
