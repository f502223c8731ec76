//! Invitations: by which machines join.

use base::KeyId;

use crate::{KeyDigest, StoreError};

/// A stored invitation. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationRecord {
    /// Its id.
    pub id: String,
    /// The SHA-256 of its secret. The secret itself is kept nowhere.
    pub digest: KeyDigest,
    /// The name of the machine that it is for, if its maker chose one.
    pub name: Option<String>,
    /// When it was made.
    pub created: u64,
    /// When it expires, unless it was used.
    pub expires: u64,
    /// When a machine joined by it.
    pub used: Option<u64>,
    /// The key of the machine that joined.
    pub key: Option<KeyId>,
    /// When it was revoked.
    pub revoked: Option<u64>,
}

/// Where invitations are kept.
pub trait InvitationStore: Send + Sync {
    /// All invitations, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_invitations(&self) -> Result<Vec<InvitationRecord>, StoreError>;

    /// Stores an invitation, or replaces the one with its id.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn save_invitation(&self, invitation: &InvitationRecord) -> Result<(), StoreError>;

    /// Stores an invitation that was used, unless the stored one was used or revoked before. Returns whether it was
    /// stored: only then may this server let the machine join, since another may have done so already.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn use_invitation(&self, invitation: &InvitationRecord) -> Result<bool, StoreError>;

    /// Deletes an invitation. An unknown one is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_invitation(&self, id: &str) -> Result<(), StoreError>;
}
