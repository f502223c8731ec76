//! Slots for large messages. They bound how many are in memory at once.
//!
//! Each key has a limited share, so that a leaked key delays nobody else. Some slots are for
//! administrators only.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots for everybody, and the further slots for administrators only.
const FOR_ALL: usize = 6;
const FOR_ADMINISTRATORS: usize = 2;
/// The slots of all connections of one key together.
const EACH_KEY: usize = 3;
/// The slots of one connection.
const EACH: usize = 2;

pub(crate) struct MessageSlots {
    for_all: Arc<SlotPool>,
    for_administrators: Arc<SlotPool>,
    /// The share of each key that has a connection.
    keys: Mutex<HashMap<String, Weak<SlotPool>>>,
}

/// A number of slots, and the number of connections that wait for one.
struct SlotPool {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The slots that one connection may claim.
#[derive(Clone)]
pub(crate) struct Claim {
    connection: Arc<SlotPool>,
    key: Arc<SlotPool>,
    for_all: Arc<SlotPool>,
    /// The slots reserved for administrators, if the client is one.
    reserved: Option<Arc<SlotPool>>,
}

/// A slot that stays taken until this is dropped.
pub(crate) struct TakenSlot {
    key: Arc<SlotPool>,
    pool: Arc<SlotPool>,
    _permits: [OwnedSemaphorePermit; 3],
}

impl Default for MessageSlots {
    fn default() -> Self {
        Self {
            for_all: SlotPool::new(FOR_ALL),
            for_administrators: SlotPool::new(FOR_ADMINISTRATORS),
            keys: Mutex::default(),
        }
    }
}

impl MessageSlots {
    /// The slots that a connection with this key may claim.
    pub(crate) fn claim(&self, key: &str, is_administrator: bool) -> Claim {
        let reserved = is_administrator.then(|| Arc::clone(&self.for_administrators));
        let for_all = Arc::clone(&self.for_all);
        Claim { connection: SlotPool::new(EACH), key: self.of_key(key), for_all, reserved }
    }

    fn of_key(&self, key: &str) -> Arc<SlotPool> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = keys.get(key).and_then(Weak::upgrade) {
            return pool;
        }
        let pool = SlotPool::new(EACH_KEY);
        // Here, so that there are no more entries than connections.
        keys.retain(|_, pool| pool.strong_count() > 0);
        keys.insert(key.to_owned(), Arc::downgrade(&pool));
        pool
    }
}

impl Claim {
    pub(crate) async fn take(self) -> io::Result<TakenSlot> {
        // The connection's own share goes first, then the key's. So a client that has used up its
        // share occupies nothing that others wait for.
        let own = self.connection.take().await?;
        let share = self.key.take().await?;
        let (pool, permit) = self.any().await?;
        Ok(TakenSlot { key: self.key, pool, _permits: [own, share, permit] })
    }

    async fn any(&self) -> io::Result<(Arc<SlotPool>, OwnedSemaphorePermit)> {
        let Some(reserved) = &self.reserved else {
            return Ok((Arc::clone(&self.for_all), self.for_all.take().await?));
        };
        // The common slots go first, so that the reserved ones stay free.
        tokio::select! {
            biased;
            permit = self.for_all.take() => Ok((Arc::clone(&self.for_all), permit?)),
            permit = reserved.take() => Ok((Arc::clone(reserved), permit?)),
        }
    }
}

impl TakenSlot {
    /// Whether another connection waits for this slot, or for a slot of the same key.
    pub(crate) fn is_wanted(&self) -> bool {
        self.key.is_wanted() || self.pool.is_wanted()
    }
}

impl SlotPool {
    fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self { slots: Arc::new(Semaphore::new(slots)), waiting: AtomicUsize::new(0) })
    }

    async fn take(&self) -> io::Result<OwnedSemaphorePermit> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitCount(self);
        Arc::clone(&self.slots).acquire_owned().await.map_err(io::Error::other)
    }

    fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// Counts as one waiting connection until it is dropped.
struct WaitCount<'a>(&'a SlotPool);

impl Drop for WaitCount<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{iter, time::Duration};

    use tokio::time::timeout;

    use super::*;

    async fn taken(claim: &Claim) -> Option<TakenSlot> {
        let taking = timeout(Duration::from_millis(50), claim.clone().take()).await;
        taking.ok().map(Result::unwrap)
    }

    /// Takes all slots that these claims can get.
    async fn all(claims: impl Iterator<Item = Claim>) -> Vec<TakenSlot> {
        let mut all = Vec::new();
        for claim in claims {
            match taken(&claim).await {
                Some(slot) => all.push(slot),
                None => break,
            }
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_two_places_and_a_key_three() {
        let slots = MessageSlots::default();
        let claim = slots.claim("k", false);
        let own = all(iter::repeat_n(claim.clone(), 9)).await;
        assert_eq!(own.len(), EACH);
        let of_key = all(iter::repeat_with(|| slots.claim("k", false)).take(9)).await;
        assert_eq!(own.len() + of_key.len(), EACH_KEY);
        let other = taken(&slots.claim("other", false)).await;
        assert!(other.is_some(), "another key has its own");
        drop(own);
        assert!(taken(&claim).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn all_keys_together_leave_two_places_to_administrators() {
        let slots = MessageSlots::default();
        let keys = |is_administrator| {
            let slots = &slots;
            (0..).map(move |key: u32| {
                slots.claim(&format!("{is_administrator} {key}"), is_administrator)
            })
        };
        let mut others = all(keys(false)).await;
        assert_eq!(others.len(), FOR_ALL);
        assert!(!others[0].is_wanted());
        let administrators = all(keys(true)).await;
        assert_eq!(administrators.len(), FOR_ADMINISTRATORS);
        others.pop();
        assert!(taken(&slots.claim("a", true)).await.is_some(), "they have the others', too");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_wanted_by_those_of_its_key_and_once_all_are_taken_by_all() {
        let slots = Arc::new(MessageSlots::default());
        let wait = |key: &'static str| {
            let slots = Arc::clone(&slots);
            tokio::spawn(async move { slots.claim(key, false).take().await })
        };
        let own = all(iter::repeat_with(|| slots.claim("k", false)).take(9)).await;
        let other = taken(&slots.claim("other", false)).await.unwrap();
        let waiting = wait("k");
        tokio::task::yield_now().await;
        assert!(own[0].is_wanted() && !other.is_wanted());
        waiting.abort();
        assert!(waiting.await.is_err());
        assert!(!own[0].is_wanted(), "who waits no more wants nothing");
        let _rest = all((0..).map(|key: u32| slots.claim(&key.to_string(), false))).await;
        let waiting = wait("late");
        tokio::task::yield_now().await;
        assert!(own[0].is_wanted() && other.is_wanted());
        waiting.abort();
    }

    #[test]
    fn keys_without_connections_are_forgotten() {
        let slots = MessageSlots::default();
        (0..100).for_each(|key| drop(slots.claim(&key.to_string(), false)));
        assert_eq!(slots.keys.lock().unwrap().len(), 1);
    }
}
