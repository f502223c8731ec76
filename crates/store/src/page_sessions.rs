//! Sessions of the web page.

use base::KeyId;

use crate::{KeyDigest, StoreError};

/// A stored session of the page. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSessionRecord {
    /// Its id.
    pub id: String,
    /// The SHA-256 of its text. The text itself is kept nowhere.
    pub digest: KeyDigest,
    /// The key that it stands for; `None`: it stands for the server's owner.
    pub key: Option<KeyId>,
    /// The SHA-256 of the text of the key, or of the owner's token, when the session was made.
    pub holder: KeyDigest,
    /// When it was made.
    pub created: u64,
    /// When it expires.
    pub expires: u64,
    /// When it was last used.
    pub last_used: Option<u64>,
    /// The browser's description of itself.
    pub browser: String,
}

/// Where sessions of the page are kept.
pub trait PageSessionStore: Send + Sync {
    /// All sessions, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_page_sessions(&self) -> Result<Vec<PageSessionRecord>, StoreError>;

    /// Stores a session, or replaces the one with its id.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn save_page_session(&self, session: &PageSessionRecord) -> Result<(), StoreError>;

    /// Deletes a session. An unknown one is no error.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_page_session(&self, id: &str) -> Result<(), StoreError>;

    /// Stores when sessions were last used. Unknown ones are skipped.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn touch_page_sessions(&self, used: &[(String, u64)]) -> Result<(), StoreError>;
}
