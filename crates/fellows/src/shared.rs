//! Records that all servers see and may change, each by compare-and-set: of several that change one at once, one wins.
//!
//! They are in a bucket in NATS's memory. When NATS starts again they are gone, and revisions begin again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::{
    Client,
    jetstream::{
        self,
        kv::{Config, CreateErrorKind, Operation, Store, UpdateErrorKind, Watch},
        stream::StorageType,
    },
};
use base::error::chain;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::{
    sealing::{GroupKey, OVERHEAD, Opener},
    transport::Transport,
};

/// The longest value of a record, in bytes.
pub const MAX_VALUE: usize = 16 * 1024;

/// The most bytes of all records together.
const MOST_BYTES: i64 = 256 * 1024 * 1024;

/// The sights that may wait for their follower.
const MOST_SIGHTS: usize = 4_096;

/// How long NATS may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The records that all servers of the group see and may change. Clones share them.
#[derive(Clone)]
pub struct SharedRecords(Arc<Inner>);

struct Inner {
    group: String,
    key: GroupKey,
    transport: Arc<Transport>,
    store: Mutex<Option<Store>>,
    follower: Mutex<Option<mpsc::Sender<Sight>>>,
}

/// A view of the records, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// A record as it is now.
    Record {
        /// Its key.
        key: String,
        /// Its value.
        value: Bytes,
        /// The number of its last change: the next change names it.
        revision: u64,
    },
    /// A record was removed.
    Removed {
        /// Its key.
        key: String,
    },
    /// NATS is reached, and every record that there is was shown since.
    Complete,
    /// NATS is not reached. What is shown next is of another connection, and may begin again.
    Lost,
}

/// Why a record was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPut {
    /// It is another one than was expected: this value and revision, or none.
    #[error("the record was changed by another server")]
    Changed(Option<(Bytes, u64)>),
    /// NATS is not reached, or does not answer; whether the record was changed is not known.
    #[error("NATS does not answer: {0}")]
    Away(String),
    /// The value is longer than [`MAX_VALUE`].
    #[error("a record has at most {MAX_VALUE} bytes")]
    TooLong,
}

impl SharedRecords {
    pub(crate) fn new(group: &str, key: GroupKey, transport: Arc<Transport>) -> Self {
        let (store, follower) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { group: group.to_owned(), key, transport, store, follower }))
    }

    /// Follows all records from now on, in the place of an earlier follower. It sees nothing until NATS is reached the
    /// next time, so this is called at the start. Who follows must go on reading: the connection waits for it.
    pub fn follow(&self) -> mpsc::Receiver<Sight> {
        let (sender, sights) = mpsc::channel(MOST_SIGHTS);
        *lock(&self.0.follower) = Some(sender);
        sights
    }

    /// Writes a record, if its revision is still the expected one; 0: if there is none. Returns the new revision.
    ///
    /// # Errors
    /// [`NotPut`] says why not.
    pub async fn put(&self, key: &str, value: &[u8], expected: u64) -> Result<u64, NotPut> {
        if value.len() > MAX_VALUE {
            return Err(NotPut::TooLong);
        }
        let store = self.store()?;
        let name = named(key);
        let sealed = self.0.transport.sealer().seal(&name, &[value]);
        let putting = async {
            match expected {
                0 => match store.create(&name, sealed).await {
                    Ok(revision) => Ok(Some(revision)),
                    Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(None),
                    Err(error) => Err(NotPut::Away(chain(&error))),
                },
                _ => match store.update(&name, sealed, expected).await {
                    Ok(revision) => Ok(Some(revision)),
                    Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
                    Err(error) => Err(NotPut::Away(chain(&error))),
                },
            }
        };
        match in_time(putting).await?? {
            Some(revision) => Ok(revision),
            None => Err(NotPut::Changed(self.get(key).await?)),
        }
    }

    /// The value and revision of a record, if there is one.
    ///
    /// # Errors
    /// [`NotPut::Away`] when NATS is not reached.
    pub async fn get(&self, key: &str) -> Result<Option<(Bytes, u64)>, NotPut> {
        let (store, name) = (self.store()?, named(key));
        let entry = in_time(store.entry(&name)).await?;
        let entry = entry.map_err(|error| NotPut::Away(chain(&error)))?;
        let entry = entry.filter(|entry| entry.operation == Operation::Put);
        Ok(entry.and_then(|entry| Some((self.opened(&name, &entry.value)?, entry.revision))))
    }

    /// Removes a record, whatever its revision is.
    ///
    /// # Errors
    /// [`NotPut::Away`] when NATS is not reached.
    pub async fn remove(&self, key: &str) -> Result<(), NotPut> {
        let (store, name) = (self.store()?, named(key));
        let removed = in_time(store.purge(&name)).await?;
        removed.map_err(|error| NotPut::Away(chain(&error)))
    }

    /// Makes the bucket where it is not there, and begins to watch it.
    pub(crate) async fn open(&self, client: &Client) -> Result<RecordWatch, String> {
        let mut context = jetstream::new(client.clone());
        context.set_timeout(PATIENCE);
        let config = Config {
            bucket: format!("warren_{}_shared", self.0.group),
            description: "What servers that act as one agree on".to_owned(),
            history: 1,
            max_value_size: i32::try_from(MAX_VALUE + OVERHEAD).unwrap_or(i32::MAX),
            max_bytes: MOST_BYTES,
            storage: StorageType::Memory,
            ..Config::default()
        };
        let store = context.create_or_update_key_value(config).await.map_err(|e| chain(&e))?;
        let watch = store.watch_with_history(">").await.map_err(|e| chain(&e))?;
        let is_empty = store.status().await.map_err(|e| chain(&e))?.values() == 0;
        *lock(&self.0.store) = Some(store);
        if is_empty {
            self.tell(Sight::Complete).await;
        }
        Ok(RecordWatch { records: self.clone(), watch, is_complete: is_empty })
    }

    /// NATS is not reached any more.
    pub(crate) async fn lost(&self) {
        let was_there = lock(&self.0.store).take().is_some();
        if was_there {
            self.tell(Sight::Lost).await;
        }
    }

    fn store(&self) -> Result<Store, NotPut> {
        lock(&self.0.store).clone().ok_or_else(|| NotPut::Away("it is not reached".to_owned()))
    }

    /// A value that a server of the group has sealed, in whatever start.
    fn opened(&self, name: &str, sealed: &Bytes) -> Option<Bytes> {
        Opener::new(self.0.key.clone()).open(name, sealed).ok().map(|(_, value)| value)
    }

    async fn tell(&self, sight: Sight) {
        let follower = lock(&self.0.follower).clone();
        if let Some(follower) = follower {
            // One that is gone does not want to know.
            let _gone = follower.send(sight).await;
        }
    }
}

/// The records as one session sees them.
pub(crate) struct RecordWatch {
    records: SharedRecords,
    watch: Watch,
    is_complete: bool,
}

impl RecordWatch {
    /// Tells the follower what is seen, until that fails: returns why.
    pub(crate) async fn run(mut self) -> String {
        loop {
            let entry = match self.watch.next().await {
                Some(Ok(entry)) => entry,
                Some(Err(error)) => return chain(&error),
                None => return "the records are not watched any more".to_owned(),
            };
            let key = hex::decode(&entry.key).ok().and_then(|key| String::from_utf8(key).ok());
            let value = || self.records.opened(&entry.key, &entry.value);
            match (key, entry.operation) {
                (Some(key), Operation::Put) => {
                    if let Some(value) = value() {
                        let revision = entry.revision;
                        self.records.tell(Sight::Record { key, value, revision }).await;
                    }
                }
                (Some(key), _) => self.records.tell(Sight::Removed { key }).await,
                (None, _) => {}
            }
            if entry.seen_current && !std::mem::replace(&mut self.is_complete, true) {
                self.records.tell(Sight::Complete).await;
            }
        }
    }
}

/// A key of the bucket, which takes few characters.
fn named(key: &str) -> String {
    hex::encode(key)
}

async fn in_time<F: Future>(asking: F) -> Result<F::Output, NotPut> {
    let answered = tokio::time::timeout(PATIENCE, asking).await;
    answered.map_err(|_| NotPut::Away("it takes too long".to_owned()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
