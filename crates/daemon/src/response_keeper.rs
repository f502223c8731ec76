//! Deletes stored responses and conversations: those that are too old, and those of keys that were revoked.

use std::{collections::HashSet, sync::Arc, time::Duration};

use access::{Keys, Moment};
use base::{KeyId, Live, error::chain, millis};
use store::{AgeClock, ResponseStore, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{rounds::Rounds, storage::aged, stores::Stores};

/// How often responses to delete are looked for.
const LOOK: Duration = Duration::from_secs(60);

/// Deletes old responses, and those of revoked keys.
#[derive(Clone)]
pub(crate) struct ResponseKeeper {
    store: Arc<dyn ResponseStore>,
    keys: Keys,
    /// How long responses are kept; zero: not at all.
    retention: Live<Duration>,
    ages: Arc<AgeClock>,
}

impl ResponseKeeper {
    /// The keeper of a server that starts. If the responses are in the server's own file, no other server uses them:
    /// then those that were being made in the background when the server ended are marked as lost.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn open(
        stores: &Stores,
        keys: &Keys,
        retention: Live<Duration>,
        ages: &Arc<AgeClock>,
    ) -> Result<Self, StoreError> {
        if stores.shared.is_none() {
            stores.responses.lose_running()?;
        }
        let store = Arc::clone(&stores.responses);
        Ok(Self { store, keys: keys.clone(), retention, ages: Arc::clone(ages) })
    }

    /// Runs until `stop`.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        let keeper = Arc::new(self);
        let mut rounds = Rounds::new(LOOK, stop);
        let mut is_reported = false;
        while rounds.next().await && !rounds.is_last() {
            let own = Arc::clone(&keeper);
            let looked = tokio::task::spawn_blocking(move || own.forget(Moment::now())).await;
            let failed = looked.ok().and_then(Result::err);
            if let Some(error) = failed.as_ref().filter(|_| !is_reported) {
                tracing::warn!(problem = chain(error), "old responses are not deleted");
            }
            is_reported = failed.is_some();
        }
    }

    /// Deletes responses that are too old, and those of revoked keys. Blocks.
    fn forget(&self, now: Moment) -> Result<(), StoreError> {
        let oldest = aged(&self.ages, now).saturating_sub(millis(self.retention.copied()));
        let mut gone = self.store.forget_kept_before(oldest)?;
        for owner in self.revoked()? {
            gone += self.store.forget_kept_of(&owner)?;
        }
        if gone > 0 {
            tracing::info!(gone, "stored responses and conversations are deleted");
        }
        Ok(())
    }

    /// The revoked keys that still have stored responses.
    fn revoked(&self) -> Result<Vec<KeyId>, StoreError> {
        let owners = self.store.kept_owners()?;
        if owners.is_empty() {
            return Ok(owners);
        }
        let revoked = self.keys.list().into_iter().filter(|key| key.revoked.is_some());
        let revoked: HashSet<KeyId> = revoked.map(|key| key.id).collect();
        Ok(owners.into_iter().filter(|owner| revoked.contains(owner)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use access::NewKey;
    use base::KeyScope;
    use store::{KeptBounds, ResponseRecord, SqliteStore};

    use super::*;

    const DAY: u64 = 24 * 60 * 60 * 1000;

    fn record(id: &str, owner: &KeyId, created: u64) -> ResponseRecord {
        ResponseRecord {
            id: id.to_owned(),
            owner: owner.clone(),
            previous: None,
            conversation: None,
            created,
            beat: None,
            input: "[]".to_owned(),
            response: "{}".to_owned(),
        }
    }

    #[test]
    fn what_is_too_old_or_of_a_revoked_key_goes() {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&directory.path().join("warren.db")).unwrap());
        let (keys, now) = (Keys::default(), Moment::now());
        let new = |name: &str| NewKey {
            name: name.to_owned(),
            scopes: vec![KeyScope::Inference],
            ..NewKey::default()
        };
        let (valid, revoked) =
            (keys.create(new("a"), now).unwrap().0.id, keys.create(new("b"), now).unwrap().0.id);
        let most = KeptBounds { number: 100, bytes: 1 << 20 };
        let save = |id: &str, owner: &KeyId, age: u64| {
            store.save_response(&record(id, owner, now.wall_ms - age), most).unwrap();
        };
        save("old", &valid, 31 * DAY);
        save("new", &valid, 29 * DAY);
        save("local", &KeyId::local(), 0);
        save("revoked", &revoked, 0);
        let is_there = |id: &str, owner: &KeyId| store.find_response(owner, id).unwrap().is_some();
        let ages = AgeClock::open(Arc::<SqliteStore>::clone(&store), now.wall_ms, Instant::now());
        let keeper = ResponseKeeper {
            store: Arc::<SqliteStore>::clone(&store),
            keys: keys.clone(),
            retention: Live::new(Duration::from_millis(30 * DAY)),
            ages: Arc::new(ages.unwrap()),
        };
        keeper.forget(now).unwrap();
        assert!(
            !is_there("old", &valid) && is_there("new", &valid) && is_there("revoked", &revoked)
        );
        keys.revoke(&revoked, now).unwrap();
        keeper.forget(now).unwrap();
        assert!(!is_there("revoked", &revoked) && is_there("local", &KeyId::local()));
        keeper.retention.set(Duration::ZERO);
        keeper.forget(now.after(Duration::from_secs(1))).unwrap();
        assert!(!is_there("new", &valid) && !is_there("local", &KeyId::local()));
    }
}
