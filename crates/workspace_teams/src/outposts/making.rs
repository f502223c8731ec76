//! The sessions that are being made here for owners. An owner whose line was cut asks again for a
//! session that is not made yet; it then gets the outcome of the first request.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use uuid::Uuid;

use super::message::FromOutpost;

/// The answer to a request for a session.
pub(crate) type Making = Shared<BoxFuture<'static, FromOutpost>>;

/// The sessions that are being made, by owner and session.
#[derive(Default)]
pub(crate) struct Makings(Mutex<BTreeMap<Key, Making>>);

type Key = (String, Uuid);

/// Forgets, when it is dropped, a session that is being made.
struct Entry {
    makings: Arc<Makings>,
    key: Key,
}

impl Makings {
    /// Makes a session by `create`, unless that is being done already.
    pub(crate) fn begin(
        self: &Arc<Self>,
        owner: &str,
        session: Uuid,
        create: impl Future<Output = FromOutpost> + Send + 'static,
    ) -> Making {
        let key = (owner.to_owned(), session);
        let mut all = self.lock();
        if let Some(making) = all.get(&key) {
            return making.clone();
        }
        let entry = Entry { makings: Arc::clone(self), key: key.clone() };
        // A task of its own: the session is made even if the line ends.
        let made = tokio::spawn(async move {
            let _entry = entry;
            create.await
        });
        let nothing = FromOutpost::Missing { sessions: Vec::new() };
        let making = made.map(|made| made.unwrap_or(nothing)).boxed().shared();
        all.insert(key, making.clone());
        making
    }

    /// The making of this session, if it is being made.
    pub(crate) fn get(&self, owner: &str, session: Uuid) -> Option<Making> {
        self.lock().get(&(owner.to_owned(), session)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Making>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.makings.lock().remove(&self.key);
    }
}
