//! The keys of a server, in memory. They are found by their text without the database, so
//! they work while it is down.
//!
//! - `key`: one key
//! - `change`: creating, rotating and revoking
//! - `refresh`: what other servers have changed
//! - `page`: sessions of the page in the place of keys

mod change;
mod key;
mod page;
mod refresh;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard},
};

use base::{JobId, KeyId, KeyLimits, KeyScope, Live, Period, RoomId, Secret, UsageBy, UsageCounts};
use store::{KeyDigest, KeyRecord, KeyStore, StoreError, UsageQuery, UsageStore, VolatileStore};
use subtle::ConstantTimeEq;

pub use self::{
    change::{KeyError, NewKey},
    key::Key,
};
use crate::{
    consumer::Denied,
    credential::digest,
    limits::{Desk, allowance::began},
    moment::Moment,
    page_sessions::PageSessions,
    prices::{Charge, Prices},
};

/// The most keys, revoked ones included.
pub const MAX_KEYS: usize = 10_000;

/// The keys of a server; clones share them.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    store: Arc<dyn KeyStore>,
    live: RwLock<LiveKeys>,
    /// Held for a whole change, including the write to the disk: changes are written in their order.
    changing: Mutex<()>,
    prices: Live<Prices>,
    sessions: OnceLock<PageSessions>,
}

#[derive(Default)]
struct LiveKeys {
    by_digest: HashMap<KeyDigest, Arc<Key>>,
    by_id: HashMap<KeyId, Arc<Key>>,
    /// Counts the use of keys that several servers share; `None`: this server counts alone.
    desk: Option<Desk>,
}

impl Keys {
    /// Loads the keys in `store`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open(store: Arc<dyn KeyStore>, now: Moment) -> Result<Self, StoreError> {
        Self::load(store, None, now)
    }

    /// Loads the keys in a store that several servers share. `desk` counts their use.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open_shared(
        store: Arc<dyn KeyStore>,
        desk: Desk,
        now: Moment,
    ) -> Result<Self, StoreError> {
        Self::load(store, Some(desk), now)
    }

    fn load(store: Arc<dyn KeyStore>, desk: Option<Desk>, now: Moment) -> Result<Self, StoreError> {
        let mut live = LiveKeys { desk, ..LiveKeys::default() };
        for record in store.load_keys()? {
            let key = Key::new(record, live.desk.as_ref(), now);
            if key.is_expired(now) {
                // So that `end_expired` does not report it: it has no connections yet.
                key.end();
            }
            live.put(Arc::new(key));
        }
        Ok(Self::of(store, RwLock::new(live)))
    }

    fn of(store: Arc<dyn KeyStore>, live: RwLock<LiveKeys>) -> Self {
        let (changing, prices, sessions) = (Mutex::default(), Live::default(), OnceLock::new());
        Self(Arc::new(Inner { store, live, changing, prices, sessions }))
    }

    /// Sets what models cost, for budgets in money. The currency never changes.
    pub fn set_prices(&self, prices: Arc<Prices>) {
        self.0.prices.set(prices);
    }

    /// The prices of models.
    pub fn prices(&self) -> Arc<Prices> {
        self.0.prices.get()
    }

    /// Adds a key from the configuration: it is not stored, never expires, and
    /// has no limits.
    pub fn add_ready_made(&self, id: KeyId, text: &Secret, scopes: &[KeyScope], now: Moment) {
        let key = Arc::new(Key::ready_made(id, digest(text.expose()), scopes, now));
        self.0.live.write().unwrap_or_else(PoisonError::into_inner).put(key);
    }

    /// Adds such a key for the use of one model, with the scope `inference`.
    pub fn add_for_model(&self, id: KeyId, text: &Secret, model: &str, now: Moment) {
        let scopes = [KeyScope::Inference];
        let key = Key::ready_made(id, digest(text.expose()), &scopes, now).only_for(model);
        self.0.live.write().unwrap_or_else(PoisonError::into_inner).put(Arc::new(key));
    }

    /// Removes a ready-made key and ends its connections. Other keys are not touched.
    pub fn remove_ready_made(&self, id: &KeyId) {
        let mut live = self.0.live.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = live.by_id.get(id).filter(|key| key.is_ready_made()) {
            key.end();
            live.remove(id);
        }
    }

    /// The key of this text, if it may be used for `scope` now; `None` if there is no such key.
    ///
    /// # Errors
    /// [`Denied`] when the key may not be used.
    pub fn present(
        &self,
        text: &str,
        scope: KeyScope,
        now: Moment,
    ) -> Result<Option<Arc<Key>>, Denied> {
        let Some(key) = self.find(text, now) else { return Ok(None) };
        // A token of the configuration has one purpose. For any other it does not count as a key.
        if key.is_ready_made() && !key.has(scope) {
            return Ok(None);
        }
        key.check(scope, now)?;
        key.used(now);
        Ok(Some(key))
    }

    /// The key of this text that may be used for `scope` now and is bound to this room; `None` if
    /// there is no such key. Other keys do not count in a room.
    ///
    /// # Errors
    /// [`Denied`] when the key may not be used.
    pub fn present_in(
        &self,
        room: &RoomId,
        text: &str,
        scope: KeyScope,
        now: Moment,
    ) -> Result<Option<Arc<Key>>, Denied> {
        let is_bound = |key: Arc<Key>| key.room() == Some(room);
        if self.find(text, now).is_some_and(is_bound) {
            self.present(text, scope, now)
        } else {
            Ok(None)
        }
    }

    /// The room that the key of this text is bound to; `None` if there is no such key, or it is for the server.
    pub fn room_of(&self, text: &str, now: Moment) -> Option<RoomId> {
        self.find(text, now)?.room().cloned()
    }

    /// Whether this is the text of a valid key of the server. Keys of a single room do not count.
    pub fn is_valid(&self, text: &str, now: Moment) -> bool {
        self.find(text, now).is_some_and(|key| key.is_valid(now) && key.room().is_none())
    }

    /// Checks that this is the text of a valid key, of the server or of a room, or of a session of the page.
    ///
    /// # Errors
    /// [`Denied`] when there is no such key, or it is revoked or expired.
    pub fn check(&self, text: &str, now: Moment) -> Result<(), Denied> {
        if self.is_owners_session(text, now) {
            return Ok(());
        }
        self.valid(text, now).map(drop)
    }

    fn valid(&self, text: &str, now: Moment) -> Result<Arc<Key>, Denied> {
        let key = self.find(text, now).ok_or(Denied::KeyUnknown)?;
        key.check_valid(now).map(|()| key)
    }

    /// The key of this id.
    pub fn get(&self, id: &KeyId) -> Option<Arc<Key>> {
        self.live().by_id.get(id).cloned()
    }

    /// All stored keys, the oldest first.
    pub fn list(&self) -> Vec<KeyRecord> {
        let mut records: Vec<KeyRecord> = {
            let live = self.live();
            live.by_id.values().filter(|key| !key.is_ready_made()).map(|key| key.record()).collect()
        };
        records.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        records
    }

    /// Settles a job of a key with what it used.
    pub fn settle(&self, id: &KeyId, job: JobId, used: impl Into<Charge>, now: Moment) {
        let key = self.live().by_id.get(id).cloned();
        if let Some(key) = key {
            key.settle(job, used, now);
        }
    }

    /// The desk that counts the use of keys that several servers share; `None`: this server counts alone.
    pub fn desk(&self) -> Option<Desk> {
        self.live().desk.clone()
    }

    /// Restores budgets after a start from the usage of the current day and month in the ledger.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn restore_budgets(&self, ledger: &dyn UsageStore, now: Moment) -> Result<(), StoreError> {
        for per in [Period::Day, Period::Month] {
            let keys = self.with_budget(per);
            if keys.is_empty() {
                continue;
            }
            let since_ms = Some(began(per, now.wall_ms));
            let query = UsageQuery { since_ms, by: vec![UsageBy::Key], ..UsageQuery::default() };
            for group in ledger.usage(&query)?.groups {
                let id = group.names.first().map(String::as_str).unwrap_or_default();
                if let Some(key) = keys.get(id) {
                    key.restore(used(key.limits(), per, &group.sums), now);
                }
            }
        }
        Ok(())
    }

    fn with_budget(&self, per: Period) -> HashMap<KeyId, Arc<Key>> {
        let live = self.live();
        let has = |key: &&Arc<Key>| {
            let KeyLimits { budget, budget_money, .. } = key.limits();
            budget.is_some_and(|it| it.per == per) || budget_money.is_some_and(|it| it.per == per)
        };
        let found = live.by_id.values().filter(has);
        found.map(|key| (key.id().clone(), Arc::clone(key))).collect()
    }

    /// Ends the connections of keys that have expired since the last call. Returns their ids.
    pub fn end_expired(&self, now: Moment) -> Vec<KeyId> {
        let live = self.live();
        let expired = live.by_id.values().filter(|key| key.is_expired(now) && key.end());
        expired.map(|key| key.id().clone()).collect()
    }

    /// Writes when keys were last used. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be written; the next call tries again.
    pub fn save_last_used(&self) -> Result<(), StoreError> {
        let used: Vec<(Arc<Key>, u64)> = {
            let live = self.live();
            let used = |key: &Arc<Key>| Some((Arc::clone(key), key.unsaved_use()?));
            live.by_id.values().filter_map(used).collect()
        };
        if used.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = used.iter().map(|(key, at)| (key.id().clone(), *at)).collect();
        self.0.store.touch_keys(&rows)?;
        used.iter().for_each(|(key, at)| key.saved_use(*at));
        Ok(())
    }

    /// The key of this text, or of the session of the page with this text.
    fn find(&self, text: &str, now: Moment) -> Option<Arc<Key>> {
        let digest = digest(text);
        let found = self.live().by_digest.get(&digest).cloned();
        let Some(key) = found else { return self.of_session(text, now) };
        // The map does not compare digests in constant time. This does.
        let same: bool = key.digest().0.ct_eq(&digest.0).into();
        same.then_some(key)
    }

    fn live(&self) -> RwLockReadGuard<'_, LiveKeys> {
        self.0.live.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of this period's budgets that these sums have used.
fn used(limits: &KeyLimits, per: Period, sums: &UsageCounts) -> Charge {
    let tokens = limits.budget.filter(|budget| budget.per == per).map(|_| sums.total_tokens);
    let money = limits.budget_money.filter(|budget| budget.per == per).map(|_| sums.cost);
    Charge { tokens: tokens.unwrap_or(0), money: money.unwrap_or_default() }
}

/// No keys, and nothing is stored.
impl Default for Keys {
    fn default() -> Self {
        Self::of(Arc::new(VolatileStore::default()), RwLock::default())
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.live().by_id.len())
    }
}

impl LiveKeys {
    /// Adds a key, or replaces the one with its id.
    fn put(&mut self, key: Arc<Key>) {
        if let Some(old) = self.by_id.insert(key.id().clone(), Arc::clone(&key)) {
            self.by_digest.remove(old.digest());
        }
        self.by_digest.insert(*key.digest(), key);
    }

    fn remove(&mut self, id: &KeyId) {
        if let Some(old) = self.by_id.remove(id) {
            self.by_digest.remove(old.digest());
        }
    }
}

#[cfg(test)]
mod tests;
