//! Keys: who may do what, and how much.

use std::fmt;

use base::{KeyId, KeyLimits, KeyScope, RoomId};

use crate::StoreError;

/// The SHA-256 of a key's text. The text itself is kept nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

/// Hides the digest from logs.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest")
    }
}

/// A stored key. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its id, which stays the same when its text changes.
    pub id: KeyId,
    /// The SHA-256 of its text.
    pub digest: KeyDigest,
    /// Its name.
    pub name: String,
    /// The first characters of its text, for people to recognise it.
    pub prefix: String,
    /// Its scopes.
    pub scopes: Vec<KeyScope>,
    /// The models it is for, or beginnings of names with `*` at the end. Empty: all models.
    pub models: Vec<String>,
    /// Its limits.
    pub limits: KeyLimits,
    /// The room that it is bound to: it reaches only the participants of that room.
    pub room: Option<RoomId>,
    /// When it was created.
    pub created: u64,
    /// When it expires.
    pub expires: Option<u64>,
    /// When it was revoked.
    pub revoked: Option<u64>,
    /// When it was last used.
    pub last_used: Option<u64>,
}

/// Where keys are kept.
pub trait KeyStore: Send + Sync {
    /// All keys, revoked ones included, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_keys(&self) -> Result<Vec<KeyRecord>, StoreError>;

    /// Stores a key, or replaces the one with its id.
    ///
    /// # Errors
    /// When it cannot be written, or another key has its digest; then nothing is changed.
    fn save_key(&self, key: &KeyRecord) -> Result<(), StoreError>;

    /// Deletes a key. An unknown one is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_key(&self, id: &KeyId) -> Result<(), StoreError>;

    /// Stores when keys were last used. Unknown keys are skipped.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn touch_keys(&self, used: &[(KeyId, u64)]) -> Result<(), StoreError>;
}
