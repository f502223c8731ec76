//! Stores facts: all sessions whose facts wait to be stored share one write.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use store::{Change, Fact, StoreError, WorkspaceStore, workspace::MAX_CHANGES};

use super::facts::KIND;
use crate::refusal::{Refusal, blocking};
use protocol::workspace::SessionId;

/// A session, as the source of the facts that are stored.
pub(crate) trait FactSource: Send + Sync + 'static {
    fn id(&self) -> SessionId;

    /// The stored form of the current facts; `None` if nothing may be stored any more.
    fn stored_facts(&self) -> Option<String>;
}

/// Stores the facts of sessions.
pub(crate) struct Keeper {
    store: Arc<dyn WorkspaceStore>,
    changed: Mutex<UnstoredFacts>,
    /// Held while facts are written. The holder writes the facts of all sessions in `changed`. It reads them while
    /// it holds this lock, so older facts never replace newer ones.
    turn: Mutex<()>,
}

/// Sessions with facts that are not stored yet.
type UnstoredFacts = BTreeMap<SessionId, Arc<dyn FactSource>>;

impl Keeper {
    pub(crate) fn new(store: Arc<dyn WorkspaceStore>) -> Self {
        Self { store, changed: Mutex::default(), turn: Mutex::default() }
    }

    /// Blocks until the session's current facts, or newer ones, are stored.
    pub(crate) fn keep_now<S: FactSource>(&self, session: &Arc<S>) -> Result<(), StoreError> {
        self.changed().insert(session.id(), Arc::<S>::clone(session));
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // An earlier holder of the turn has written this session's facts, too.
        if !self.changed().contains_key(&session.id()) {
            return Ok(());
        }
        self.write()
    }

    /// Like [`Keeper::keep_now`], but does not block the calling thread.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        session: &Arc<impl FactSource>,
    ) -> Result<(), Refusal> {
        let (keeper, session) = (Arc::clone(self), Arc::clone(session));
        blocking(move || keeper.keep_now(&session)).await
    }

    /// Stores the facts in the background. An error is only logged.
    pub(crate) fn keep_soon(self: &Arc<Self>, session: &Arc<impl FactSource>) {
        let (keeper, session) = (Arc::clone(self), Arc::clone(session));
        let keep = move || {
            if let Err(error) = keeper.keep_now(&session) {
                let error = base::error::chain(&error);
                tracing::error!(session = %session.id(), error, "cannot keep what a session is");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(keep)),
            // Without a runtime no other thread can store them.
            Err(_) => keep(),
        }
    }

    /// Removes the facts of a session, which must be marked as gone. It blocks.
    pub(crate) fn forget_now(&self, id: SessionId) -> Result<(), StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed().remove(&id);
        self.store.change_facts(&[Change::Forget { kind: KIND.to_owned(), id: id.to_string() }])
    }

    /// All facts of a kind. It blocks.
    pub(crate) fn load(&self, kind: &str) -> Result<Vec<Fact>, Refusal> {
        Ok(self.store.load_facts(kind)?)
    }

    /// Changes facts in one transaction. It blocks.
    pub(crate) fn change(&self, changes: &[Change]) -> Result<(), Refusal> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.store.change_facts(changes)?)
    }

    /// Writes all changed facts. Facts that cannot be written stay among the changed ones.
    fn write(&self) -> Result<(), StoreError> {
        let mut batch = std::mem::take(&mut *self.changed());
        while !batch.is_empty() {
            let some: Vec<_> = batch.values().take(MAX_CHANGES).map(Arc::clone).collect();
            let changes: Vec<Change> = some.iter().filter_map(change).collect();
            if let Err(error) = self.store.change_facts(&changes) {
                self.changed().extend(batch);
                return Err(error);
            }
            some.iter().for_each(|session| drop(batch.remove(&session.id())));
        }
        Ok(())
    }

    fn changed(&self) -> std::sync::MutexGuard<'_, UnstoredFacts> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The facts to store for a session; `None` if it is gone.
fn change(session: &Arc<dyn FactSource>) -> Option<Change> {
    let (id, json) = (session.id().to_string(), session.stored_facts()?);
    Some(Change::Keep(Fact { kind: KIND.to_owned(), id, json }))
}
