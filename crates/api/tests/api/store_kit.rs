//! A store of responses that a test can hold up or have fail.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering::Relaxed},
    mpsc,
};

use base::KeyId;
use store::{
    ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
    SqliteStore, StoreError,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most that is told and not read yet. What comes then is not told.
const MOST_TOLD: usize = 256;

/// An act of a [`ToldStore`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It has written the end of a response that is made in the background, and says so only when it is let.
    Ended,
    /// It was asked whether such a response is still to be made.
    Asked,
}

/// A store that says what it does to responses that are made in the background.
pub(crate) struct ToldStore {
    inner: SqliteStore,
    done: Sender<Done>,
    /// The first end that is written waits for a word from here.
    gate: Mutex<Option<mpsc::Receiver<()>>>,
    /// Whether items of conversations cannot be written.
    refuses_items: AtomicBool,
}

impl ToldStore {
    pub(crate) fn new(inner: SqliteStore) -> (Self, Receiver<Done>, mpsc::SyncSender<()>) {
        let ((done, told), (letting, gate)) = (channel(MOST_TOLD), mpsc::sync_channel(1));
        let (gate, refuses_items) = (Mutex::new(Some(gate)), AtomicBool::default());
        (Self { inner, done, gate, refuses_items }, told, letting)
    }

    pub(crate) fn refuse_items(&self) {
        self.refuses_items.store(true, Relaxed);
    }
}

macro_rules! same {
    ($(fn $name:ident($($given:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($given: $kind),*) -> Result<$result, StoreError> {
            self.inner.$name($($given),*)
        })*
    };
}

impl ResponseStore for ToldStore {
    same! {
        fn save_response(response: &ResponseRecord, most: KeptBounds) -> ();
        fn find_response(owner: &KeyId, id: &str) -> Option<ResponseRecord>;
        fn response_chain(owner: &KeyId, id: &str, most: ChainBounds) -> Vec<ResponseRecord>;
        fn lose_running() -> ();
        fn forget_response(owner: &KeyId, id: &str) -> bool;
        fn save_conversation(
            conversation: &ConversationRecord, items: &[ItemRecord], most: KeptBounds
        ) -> ();
        fn find_conversation(owner: &KeyId, id: &str) -> Option<ConversationRecord>;
        fn change_conversation(owner: &KeyId, id: &str, metadata: &str) -> bool;
        fn forget_conversation(owner: &KeyId, id: &str) -> bool;
        fn items(owner: &KeyId, id: &str) -> Option<Vec<ItemRecord>>;
        fn forget_item(owner: &KeyId, id: &str, item: &str) -> bool;
        fn forget_kept_before(at: u64) -> u64;
        fn kept_owners() -> Vec<KeyId>;
        fn forget_kept_of(owner: &KeyId) -> u64;
    }

    fn change_running(
        &self,
        owner: &KeyId,
        id: &str,
        response: Option<&str>,
        beat: Option<u64>,
    ) -> Result<bool, StoreError> {
        let changed = self.inner.change_running(owner, id, response, beat)?;
        match (response, beat) {
            (Some(_), None) => {
                let gate = self.gate.lock().unwrap().take();
                if let Some(gate) = gate {
                    let _test_is_over = self.done.try_send(Done::Ended);
                    let _test_is_over = gate.recv();
                }
            }
            (None, Some(_)) => {
                let _test_is_over = self.done.try_send(Done::Asked);
            }
            _ => {}
        }
        Ok(changed)
    }

    fn add_items(
        &self,
        owner: &KeyId,
        id: &str,
        items: &[ItemRecord],
        used: u64,
        most: KeptBounds,
    ) -> Result<bool, StoreError> {
        match self.refuses_items.load(Relaxed) {
            true => Err(StoreError::ReadOnly { path: "the test's".to_owned() }),
            false => self.inner.add_items(owner, id, items, used, most),
        }
    }
}
