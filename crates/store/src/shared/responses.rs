//! Stored responses and conversations: in the database alone.

use base::KeyId;

use super::SharedStore;
use crate::{
    StoreError,
    responses::{
        ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
    },
};

impl ResponseStore for SharedStore {
    fn save_response(&self, response: &ResponseRecord, most: KeptBounds) -> Result<(), StoreError> {
        self.note(self.database.save_response(response, most))
    }

    fn find_response(&self, owner: &KeyId, id: &str) -> Result<Option<ResponseRecord>, StoreError> {
        self.note(self.database.find_response(owner, id))
    }

    fn response_chain(
        &self,
        owner: &KeyId,
        id: &str,
        most: ChainBounds,
    ) -> Result<Vec<ResponseRecord>, StoreError> {
        self.note(self.database.response_chain(owner, id, most))
    }

    fn change_running(
        &self,
        owner: &KeyId,
        id: &str,
        response: Option<&str>,
        beat: Option<u64>,
    ) -> Result<bool, StoreError> {
        self.note(self.database.change_running(owner, id, response, beat))
    }

    fn lose_running(&self) -> Result<(), StoreError> {
        self.note(self.database.lose_running())
    }

    fn forget_response(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError> {
        self.note(self.database.forget_response(owner, id))
    }

    fn save_conversation(
        &self,
        conversation: &ConversationRecord,
        items: &[ItemRecord],
        most: KeptBounds,
    ) -> Result<(), StoreError> {
        self.note(self.database.save_conversation(conversation, items, most))
    }

    fn find_conversation(
        &self,
        owner: &KeyId,
        id: &str,
    ) -> Result<Option<ConversationRecord>, StoreError> {
        self.note(self.database.find_conversation(owner, id))
    }

    fn change_conversation(
        &self,
        owner: &KeyId,
        id: &str,
        metadata: &str,
    ) -> Result<bool, StoreError> {
        self.note(self.database.change_conversation(owner, id, metadata))
    }

    fn forget_conversation(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError> {
        self.note(self.database.forget_conversation(owner, id))
    }

    fn items(&self, owner: &KeyId, id: &str) -> Result<Option<Vec<ItemRecord>>, StoreError> {
        self.note(self.database.items(owner, id))
    }

    fn add_items(
        &self,
        owner: &KeyId,
        id: &str,
        items: &[ItemRecord],
        used: u64,
        most: KeptBounds,
    ) -> Result<bool, StoreError> {
        self.note(self.database.add_items(owner, id, items, used, most))
    }

    fn forget_item(&self, owner: &KeyId, id: &str, item: &str) -> Result<bool, StoreError> {
        self.note(self.database.forget_item(owner, id, item))
    }

    fn forget_kept_before(&self, at: u64) -> Result<u64, StoreError> {
        self.note(self.database.forget_kept_before(at))
    }

    fn kept_owners(&self) -> Result<Vec<KeyId>, StoreError> {
        self.note(self.database.kept_owners())
    }

    fn forget_kept_of(&self, owner: &KeyId) -> Result<u64, StoreError> {
        self.note(self.database.forget_kept_of(owner))
    }
}
