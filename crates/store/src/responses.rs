//! Responses and conversations that clients asked to keep.
//!
//! Everything here belongs to a key, and is found by that key alone. Times are in milliseconds since 1970.

use base::KeyId;

use crate::StoreError;

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseRecord {
    /// Its id.
    pub id: String,
    /// The key that made it.
    pub owner: KeyId,
    /// The response that it continues.
    pub previous: Option<String>,
    /// The conversation that it belongs to.
    pub conversation: Option<String>,
    /// When it was made.
    pub created: u64,
    /// While it is made in the background: when its server last reported work on it. `None` once it has ended.
    pub beat: Option<u64>,
    /// The items of its own request, a JSON list.
    pub input: String,
    /// The response itself, a JSON object.
    pub response: String,
}

/// A stored conversation, without its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRecord {
    /// Its id.
    pub id: String,
    /// The key that made it.
    pub owner: KeyId,
    /// When it was made.
    pub created: u64,
    /// When something was last added to it.
    pub used: u64,
    /// The client's notes about it, a JSON object.
    pub metadata: String,
}

/// An item of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRecord {
    /// Its id, which no other item of the conversation has.
    pub id: String,
    /// The item, a JSON object.
    pub json: String,
}

/// The most that is kept for one key. Beyond that, the oldest are deleted.
#[derive(Debug, Clone, Copy)]
pub struct KeptBounds {
    /// Responses, or conversations.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The most of a chain of responses that is read.
#[derive(Debug, Clone, Copy)]
pub struct ChainBounds {
    /// Responses.
    pub links: u64,
    /// Their bytes. The response by which a chain exceeds them is still read.
    pub bytes: u64,
}

/// Where responses and conversations are kept.
pub trait ResponseStore: Send + Sync {
    /// Stores a response. Then the oldest of its key's responses are deleted while these exceed `most`, except this
    /// one and those that have not ended.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn save_response(&self, response: &ResponseRecord, most: KeptBounds) -> Result<(), StoreError>;

    /// A key's response.
    ///
    /// # Errors
    /// When it cannot be read.
    fn find_response(&self, owner: &KeyId, id: &str) -> Result<Option<ResponseRecord>, StoreError>;

    /// A key's response and those that it continues, the newest first, up to the first that is missing. Empty if the
    /// response itself is.
    ///
    /// # Errors
    /// When they cannot be read.
    fn response_chain(
        &self,
        owner: &KeyId,
        id: &str,
        most: ChainBounds,
    ) -> Result<Vec<ResponseRecord>, StoreError>;

    /// Notes the progress of a response that is made in the background: its text, if that has changed, and the time of
    /// this report, or `None` if it has ended. Returns whether there is such a response that had not ended before.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn change_running(
        &self,
        owner: &KeyId,
        id: &str,
        response: Option<&str>,
        beat: Option<u64>,
    ) -> Result<bool, StoreError>;

    /// Notes that no server works on any of the responses that have not ended: their `beat` becomes 0.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn lose_running(&self) -> Result<(), StoreError>;

    /// Deletes a key's response. Returns whether there was one.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_response(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError>;

    /// Stores a new conversation with its first items. Then the longest unused of its key's other conversations are
    /// deleted while all together exceed `most`.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn save_conversation(
        &self,
        conversation: &ConversationRecord,
        items: &[ItemRecord],
        most: KeptBounds,
    ) -> Result<(), StoreError>;

    /// A key's conversation.
    ///
    /// # Errors
    /// When it cannot be read.
    fn find_conversation(
        &self,
        owner: &KeyId,
        id: &str,
    ) -> Result<Option<ConversationRecord>, StoreError>;

    /// Replaces what the client noted about a conversation. Returns whether there is one.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn change_conversation(
        &self,
        owner: &KeyId,
        id: &str,
        metadata: &str,
    ) -> Result<bool, StoreError>;

    /// Deletes a key's conversation and its items. Returns whether there was one.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_conversation(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError>;

    /// The items of a key's conversation, in their order; `None` without such a conversation.
    ///
    /// # Errors
    /// When they cannot be read.
    fn items(&self, owner: &KeyId, id: &str) -> Result<Option<Vec<ItemRecord>>, StoreError>;

    /// Adds items at the end of a key's conversation, and notes that it was used at `used`. Returns whether there is
    /// such a conversation. Then others of the key are deleted as by [`ResponseStore::save_conversation`].
    ///
    /// # Errors
    /// When they cannot be written; then nothing is changed.
    fn add_items(
        &self,
        owner: &KeyId,
        id: &str,
        items: &[ItemRecord],
        used: u64,
        most: KeptBounds,
    ) -> Result<bool, StoreError>;

    /// Deletes an item of a key's conversation. Returns whether there was one.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_item(&self, owner: &KeyId, id: &str, item: &str) -> Result<bool, StoreError>;

    /// Deletes the responses made before this time, and the conversations not used since then. Returns how many.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_kept_before(&self, at: u64) -> Result<u64, StoreError>;

    /// The keys for which something is kept.
    ///
    /// # Errors
    /// When they cannot be read.
    fn kept_owners(&self) -> Result<Vec<KeyId>, StoreError>;

    /// Deletes all that is kept for a key. Returns how many responses and conversations.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_kept_of(&self, owner: &KeyId) -> Result<u64, StoreError>;
}

impl ResponseRecord {
    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        (self.input.len() + self.response.len()) as u64
    }
}

/// The size of items, in bytes.
pub(crate) fn size_of(items: &[ItemRecord]) -> u64 {
    items.iter().map(|item| (item.id.len() + item.json.len()) as u64).sum()
}
