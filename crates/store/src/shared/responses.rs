//! Stored responses and conversations: in the database alone.

use base::KeyId;

use super::SharedStore;
use crate::{
    StoreError,
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
