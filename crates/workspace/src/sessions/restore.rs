//! Restores the sessions of an earlier daemon, with their history.

use std::sync::Arc;

use jiff::Timestamp;
use process::end_leftovers;
use protocol::workspace::SessionMode;
use session::terminal::size::Size;
use store::{Fact, StoreError, WorkspaceStore};
use tokio::task;

use super::{
    Sessions,
    clock::now,
    ending::WITH_THE_DAEMON,
    facts::{KIND, StoredFacts},
    output::Output,
    session::Session,
};

impl Sessions {
    /// Restores the stored sessions. Terminals of an earlier daemon have ended, agents are idle,
    /// and adopted processes are looked for.
    pub(crate) async fn restore(&self, store: Arc<dyn WorkspaceStore>) -> Result<(), StoreError> {
        self.begin();
        let facts = task::spawn_blocking(move || store.load_facts(KIND)).await;
        let kept: Vec<StoredFacts> =
            facts.unwrap_or(Ok(Vec::new()))?.iter().filter_map(read).collect();
        self.end_leftovers(&kept).await;
        for kept in kept {
            self.take_up(kept).await;
        }
        Ok(())
    }

    /// Ends the processes that are left if the supervisor was killed, too.
    async fn end_leftovers(&self, kept: &[StoredFacts]) {
        let lived = kept.iter().filter(|kept| kept.facts.ended.is_none());
        let owned = lived.filter(|kept| kept.facts.mode != SessionMode::Adopted);
        let ids: Vec<_> = owned.map(|kept| kept.facts.id.uuid()).collect();
        let left = end_leftovers(&ids).await;
        if left > 0 {
            tracing::error!(left, "processes of an earlier daemon cannot be ended");
        }
    }

    async fn take_up(&self, kept: StoredFacts) {
        let size = kept.size.and_then(|(cols, rows)| Size::new(cols, rows).ok());
        let session =
            Session::new(&self.0.commons, kept.facts, size.unwrap_or(Size::DEFAULT), now());
        self.lock().insert(session.id, Arc::clone(&session));
        if session.is_terminal {
            return session.was_terminal().await;
        }
        session.go_on_with_history().await;
        if !session.may_go_on() {
            return;
        }
        let started = match self.0.commons.engines() {
            Ok(engines) => session.start(&*engines, Size::DEFAULT).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = started {
            session.lock().facts.ended = Some(refusal.to_string());
        }
    }
}

impl Session {
    /// Marks a terminal as ended: its process ended with the daemon, if not before. Its output is
    /// on the disk.
    async fn was_terminal(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let written = task::spawn_blocking(move || session.segments().modified()).await;
        let written = written.ok().flatten().and_then(|time| Timestamp::try_from(time).ok());
        let mut state = self.lock();
        state.output = Output::slept(self.commons.log_bytes);
        state.port.end();
        if state.facts.ended.is_some() {
            return;
        }
        state.facts.ended = Some(WITH_THE_DAEMON.to_owned());
        state.facts.last_active = written.unwrap_or(state.facts.last_active);
        drop(state);
        self.commons.keeper.keep_soon(self);
    }

    /// Continues the numbers of the output on the disk.
    async fn go_on_with_history(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let last = task::spawn_blocking(move || session.segments().last_seq()).await;
        match last {
            Ok(Ok(Some(seq))) => self.lock().output.go_on_after(seq),
            Ok(Ok(None)) | Err(_) => {}
            Ok(Err(error)) => {
                tracing::error!(session = %self.id, %error, "its history cannot be read");
            }
        }
    }

    /// Whether the engine may be started again. An agent's always may: what it lacked may be here
    /// now.
    fn may_go_on(&self) -> bool {
        let facts = &mut self.lock().facts;
        if facts.mode == SessionMode::Sdk {
            facts.ended = None;
        }
        facts.ended.is_none()
    }
}

fn read(fact: &Fact) -> Option<StoredFacts> {
    let read = serde_json::from_str(&fact.json);
    read.inspect_err(|error| tracing::error!(id = fact.id, %error, "a session cannot be read")).ok()
}
