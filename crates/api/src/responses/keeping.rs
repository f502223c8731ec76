//! Where responses and conversations are kept, and which responses are made in the background.

use std::sync::Arc;

use base::KeyId;
use store::{
    ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
    StoreError,
};

use super::{
    chain, failure,
    items::{self, new_id},
    running::Background,
};
use crate::{blocking::blocking, error::ApiError};

/// The most responses that are kept for one key.
const RESPONSES: KeptBounds = KeptBounds { number: 10_000, bytes: 256 * 1024 * 1024 };

/// The most conversations that are kept for one key.
const CONVERSATIONS: KeptBounds = KeptBounds { number: 1_000, bytes: 256 * 1024 * 1024 };

/// The most items of a conversation.
pub(crate) const MOST_ITEMS: usize = 10_000;

/// Where responses and conversations are kept. Clones share it.
#[derive(Clone)]
pub(crate) struct Keeping {
    store: Arc<dyn ResponseStore>,
    background: Arc<Background>,
}

impl Keeping {
    pub(crate) fn new(store: Arc<dyn ResponseStore>) -> Self {
        Self { store, background: Arc::default() }
    }

    /// The responses that this server makes in the background now.
    pub(crate) fn background(&self) -> &Arc<Background> {
        &self.background
    }

    /// A key's response.
    ///
    /// # Errors
    /// 404 when the key has no such response, 503 when the database is away.
    pub(crate) async fn find(&self, owner: &KeyId, id: &str) -> Result<ResponseRecord, ApiError> {
        let (key, name) = (owner.clone(), id.to_owned());
        let found = self.ask(move |store| store.find_response(&key, &name)).await?;
        found.ok_or_else(|| failure::no_response(id))
    }

    /// The items of a response and of those that it continues, the oldest first, within `limit` bytes.
    ///
    /// # Errors
    /// 400 when the chain is not whole or too long, or its newest response has not ended well; 413 when it is too
    /// large; 503 when the database is away.
    pub(crate) async fn chain(
        &self,
        owner: &KeyId,
        id: &str,
        limit: usize,
    ) -> Result<Vec<String>, ApiError> {
        let most = ChainBounds { links: chain::MOST_LINKS, bytes: limit as u64 };
        let links = self.links(owner, id, most).await?;
        let id = id.to_owned();
        blocking(move || chain::items_of_chain(&id, &links, most)).await?
    }

    /// A response and those that it continues, the newest first, within the bounds `most`.
    ///
    /// # Errors
    /// 503 when the database is away.
    pub(crate) async fn links(
        &self,
        owner: &KeyId,
        id: &str,
        most: ChainBounds,
    ) -> Result<Vec<ResponseRecord>, ApiError> {
        let (owner, id) = (owner.clone(), id.to_owned());
        self.ask(move |store| store.response_chain(&owner, &id, most)).await
    }

    /// The items that were said in a conversation so far, within `limit` bytes.
    ///
    /// # Errors
    /// 404 when the key has no such conversation, 400 when it takes no more items, 413 when it is over `limit`, 503
    /// when the database is away.
    pub(crate) async fn said(
        &self,
        owner: &KeyId,
        id: &str,
        limit: usize,
    ) -> Result<Vec<String>, ApiError> {
        let items = self.items(owner, id).await?;
        if items.len() >= MOST_ITEMS {
            return Err(failure::conversation_full(MOST_ITEMS));
        }
        let bytes: usize = items.iter().map(|item| item.json.len()).sum();
        if bytes > limit {
            return Err(failure::too_large_together("conversation", limit));
        }
        Ok(items.into_iter().map(|item| item.json).collect())
    }

    /// The items of a key's conversation.
    ///
    /// # Errors
    /// 404 when the key has no such conversation, 503 when the database is away.
    pub(crate) async fn items(&self, owner: &KeyId, id: &str) -> Result<Vec<ItemRecord>, ApiError> {
        let (key, name) = (owner.clone(), id.to_owned());
        let found = self.ask(move |store| store.items(&key, &name)).await?;
        found.ok_or_else(|| failure::no_conversation(id))
    }

    /// Makes a conversation.
    ///
    /// # Errors
    /// 503 when the database is away.
    pub(crate) async fn begin(
        &self,
        conversation: ConversationRecord,
        items: Vec<ItemRecord>,
    ) -> Result<(), ApiError> {
        self.ask(move |store| store.save_conversation(&conversation, &items, CONVERSATIONS)).await
    }

    /// Asks the store for something, on a thread for blocking work.
    ///
    /// # Errors
    /// 503 when the database is away.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn ResponseStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = Arc::clone(&self.store);
        blocking(move || ask(&*store)).await?.map_err(|error| failure::of_store(&error))
    }

    /// Keeps a response. Blocks.
    ///
    /// # Errors
    /// 503 when the database is away.
    pub(crate) fn save(&self, response: &ResponseRecord) -> Result<(), ApiError> {
        self.store.save_response(response, RESPONSES).map_err(|error| failure::of_store(&error))
    }

    /// Ends a response that is made in the background; `response` is its final text. Returns whether it had not ended
    /// before. Blocks.
    ///
    /// # Errors
    /// 503 when the database is away.
    pub(crate) fn end_running(
        &self,
        owner: &KeyId,
        id: &str,
        response: &str,
    ) -> Result<bool, ApiError> {
        let ended = self.store.change_running(owner, id, Some(response), None);
        ended.map_err(|error| failure::of_store(&error))
    }

    /// Adds items to a conversation. Returns whether the conversation exists. If the store refuses them, they are
    /// added under new ids. Blocks.
    ///
    /// # Errors
    /// 503 when the database is away or fails.
    pub(crate) fn add(
        &self,
        owner: &KeyId,
        conversation: &str,
        items: Vec<ItemRecord>,
    ) -> Result<bool, ApiError> {
        let used = access::Moment::now().wall_ms;
        let add = |items: &[ItemRecord]| {
            self.store.add_items(owner, conversation, items, used, CONVERSATIONS)
        };
        let added = match add(&items) {
            Err(error) if !error.is_unavailable() => add(&renamed(items)),
            added => added,
        };
        added.map_err(|error| failure::of_store(&error))
    }
}

/// The same items with new ids, for a client or a provider that has used an id twice.
fn renamed(items: Vec<ItemRecord>) -> Vec<ItemRecord> {
    let rename = |ItemRecord { json, .. }| {
        let id = new_id(items::prefix(&json));
        ItemRecord { json: items::with_id(&json, &id), id }
    };
    items.into_iter().map(rename).collect()
}
