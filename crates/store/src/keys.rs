//! Keys: who may do what, and how much.

use std::fmt;

use base::{KeyId, KeyLimits, KeyScope, RoomId};

use crate::StoreError;

/// The SHA-256 of a key's text. The text itself is kept nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

/// Shows nothing: a log is no place for it.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest")
    }
}

/// A key, as it is kept. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its id, which stays the same when its text changes.
    pub id: KeyId,
    /// The SHA-256 of its text.
    pub digest: KeyDigest,
    /// What its owner calls it.
    pub name: String,
    /// The first characters of its text, for telling keys apart.
    pub prefix: String,
    /// What it lets its holder do.
    pub scopes: Vec<KeyScope>,
    /// The models it may be used for, with `*` at the end for all that begin so. Empty: every one.
    pub models: Vec<String>,
    /// How much may be done with it.
    pub limits: KeyLimits,
    /// The room that it is bound to: it reaches that room's participants, and nobody else.
    pub room: Option<RoomId>,
    /// When it was made.
    pub created: u64,
    /// From when on it does not work.
    pub expires: Option<u64>,
    /// When it was revoked.
    pub revoked: Option<u64>,
    /// When it was last used.
    pub last_used: Option<u64>,
}

/// Where keys are kept.
pub trait KeyStore: Send + Sync {
    /// All that are kept, the revoked included, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_keys(&self) -> Result<Vec<KeyRecord>, StoreError>;

    /// Keeps a key, in place of what was kept under its id.
    ///
    /// # Errors
    /// When it cannot be written, or another key has its digest; then nothing is changed.
    fn save_key(&self, key: &KeyRecord) -> Result<(), StoreError>;

    /// Forgets a key. One that is not there is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_key(&self, id: &KeyId) -> Result<(), StoreError>;

    /// Notes when keys were last used. Keys that are not there are passed over.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn touch_keys(&self, used: &[(KeyId, u64)]) -> Result<(), StoreError>;
}
