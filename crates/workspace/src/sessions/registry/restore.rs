//! Restores the sessions of an earlier daemon, with their history.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use process::end_leftovers;
use protocol::workspace::SessionMode;
use session::terminal::size::Size;
use store::{Fact, StoreError, WorkspaceStore};
use tokio::task;

use super::{Sessions, create::start, takeover::Survivors};
use crate::{
    refusal::Refusal,
    sessions::{
        clock::now,
        life::{
            WITH_THE_DAEMON,
            facts::{KIND, StoredFacts},
        },
        moving::DEPARTURE,
        output::{Output, history::History},
        session::Session,
    },
};

impl Sessions {
    /// Restores the stored sessions, with those processes that outlived the earlier daemon. Without its
    /// process, a terminal counts as ended, and an agent is idle. Adopted processes are looked up by their ids.
    pub(crate) async fn restore(
        &self,
        store: Arc<dyn WorkspaceStore>,
        mut survivors: Survivors,
    ) -> Result<(), StoreError> {
        self.begin();
        let facts = task::spawn_blocking(move || store.load_facts(KIND)).await;
        let stored: Vec<StoredFacts> =
            facts.unwrap_or(Ok(Vec::new()))?.iter().filter_map(read).collect();
        let stored = self.without_left(stored).await?;
        survivors.end_all_but(stored.iter().map(|stored| &stored.facts)).await;
        self.end_leftovers(&stored, &survivors).await;
        for stored in stored {
            match survivors.take(stored.facts.id) {
                Some(child) => self.take_over(stored, child, survivors.how_lost()).await,
                None => self.take_up_with(stored, None, survivors.how_lost()).await,
            }
        }
        Ok(())
    }

    /// These sessions without those that have left for another machine.
    async fn without_left(&self, stored: Vec<StoredFacts>) -> Result<Vec<StoredFacts>, StoreError> {
        let shared = Arc::clone(&self.0.shared);
        let loading = task::spawn_blocking(move || shared.keeper.load(DEPARTURE)).await;
        let left = match loading {
            // Without this list a session could run on two machines.
            Ok(Err(Refusal::Store(error))) => return Err(error),
            loaded => loaded.ok().and_then(Result::ok).unwrap_or_default(),
        };
        let left: BTreeSet<String> = left.into_iter().map(|fact| fact.id).collect();
        Ok(stored
            .into_iter()
            .filter(|stored| !left.contains(&stored.facts.id.to_string()))
            .collect())
    }

    /// Ends the processes that an earlier daemon left because its supervisor was killed, too.
    async fn end_leftovers(&self, stored: &[StoredFacts], survivors: &Survivors) {
        let lived = stored.iter().filter(|stored| stored.facts.ended.is_none());
        let owned = lived.filter(|stored| stored.facts.mode != SessionMode::Adopted);
        let ids = owned.map(|stored| stored.facts.id.uuid());
        let ids: Vec<_> = ids.filter(|id| !survivors.has(*id)).collect();
        let left = end_leftovers(&ids).await;
        if left > 0 {
            tracing::error!(left, "processes of an earlier daemon cannot be ended");
        }
    }

    /// Restores a session. `last_seq` is the number of its newest output, if all of it is known to be
    /// on the disk.
    pub(in crate::sessions) async fn take_up(&self, stored: StoredFacts, last_seq: Option<u64>) {
        self.take_up_with(stored, last_seq, WITH_THE_DAEMON).await;
    }

    /// [`Sessions::take_up`]; `how` says in words how a terminal ended.
    pub(super) async fn take_up_with(
        &self,
        stored: StoredFacts,
        last_seq: Option<u64>,
        how: &'static str,
    ) {
        let size = stored.size.and_then(|(cols, rows)| Size::new(cols, rows).ok());
        let session =
            Session::new(&self.0.shared, stored.facts, size.unwrap_or(Size::DEFAULT), now());
        self.lock().insert(session.id, Arc::clone(&session));
        if session.is_terminal {
            return end_terminal(&session, how).await;
        }
        continue_turns(&session).await;
        match last_seq {
            Some(last_seq) => session.lock().output.continue_at(last_seq),
            None => continue_history(&session).await,
        }
        if !session.lock().life.resume() {
            return;
        }
        let started = match self.engines() {
            Ok(engines) => start(&session, &*engines, Size::DEFAULT).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = started {
            session.lock().life.facts.ended = Some(refusal.to_string());
        }
    }
}

/// Marks a terminal as ended: its process ended with the earlier daemon, if not before. Its output is only on the
/// disk.
async fn end_terminal(session: &Arc<Session>, how: &str) {
    let history = Arc::clone(session);
    let written = task::spawn_blocking(move || history.history.lock().modified()).await;
    let written = written.ok().flatten().and_then(|time| Timestamp::try_from(time).ok());
    let is_new = {
        let mut state = session.lock();
        state.output = Output::unloaded(session.shared.log_bytes);
        state.life.end_with_earlier_daemon(how, written)
    };
    if is_new {
        session.shared.keeper.keep_soon(session);
    }
}

/// Continues the numbers of the output on the disk.
async fn continue_history(session: &Arc<Session>) {
    if let Some(seq) = last_seq(session, |session| &session.history, "its history").await {
        session.lock().output.continue_after(seq);
    }
}

/// Continues the numbers of the events on the disk.
pub(super) async fn continue_turns(session: &Arc<Session>) {
    let events = "the events of its turns";
    if let Some(number) = last_seq(session, |session| &session.turn_history, events).await {
        session.lock().turns.continue_after(number);
    }
}

/// The newest number in one of a session's histories, if it can be read.
async fn last_seq(
    session: &Arc<Session>,
    history: fn(&Session) -> &History,
    what: &str,
) -> Option<u64> {
    let owner = Arc::clone(session);
    let last = task::spawn_blocking(move || history(&owner).lock().last_seq()).await.ok()?;
    last.unwrap_or_else(|error| {
        tracing::error!(session = %session.id, %error, "{what} cannot be read");
        None
    })
}

fn read(fact: &Fact) -> Option<StoredFacts> {
    let read = serde_json::from_str(&fact.json);
    read.inspect_err(|error| tracing::error!(id = fact.id, %error, "a session cannot be read")).ok()
}
