//! Takes over sessions whose processes outlived the earlier daemon.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use process::{Child, ChildIo, HeldProcess, Journal};
use protocol::workspace::{AgentEvent, SessionId, SessionMode};
use session::terminal::{log::Gather, size::Size};
use tokio::task;
use tracing::Instrument as _;
use uuid::Uuid;

use super::{Sessions, restore::continue_turns};
use crate::{
    refusal::Refusal,
    sessions::{
        clock::now,
        feed::Feed,
        life::{
            OTHER_VERSION, WITH_THE_DAEMON,
            facts::{Facts, StoredFacts},
        },
        output::{Output, journal::TerminalState, painter::Painter},
        session::Session,
    },
};

/// The processes that outlived the earlier daemon.
#[derive(Default)]
pub(crate) struct Survivors {
    children: HashMap<Uuid, Child>,
    is_other_version: bool,
}

impl Survivors {
    pub(crate) fn new(held: Vec<HeldProcess>) -> Self {
        let children = held.into_iter().map(|held| (held.id, held.child)).collect();
        Self { children, is_other_version: false }
    }

    /// No processes: this version of Warren cannot continue what the earlier one began.
    pub(crate) fn of_other_version() -> Self {
        Self { is_other_version: true, ..Self::default() }
    }

    pub(super) fn has(&self, id: Uuid) -> bool {
        self.children.contains_key(&id)
    }

    /// The process of a session.
    pub(super) fn take(&mut self, id: SessionId) -> Option<Child> {
        self.children.remove(&id.uuid())
    }

    /// How the terminals have ended whose processes are not among these, in words.
    pub(super) const fn how_lost(&self) -> &'static str {
        if self.is_other_version { OTHER_VERSION } else { WITH_THE_DAEMON }
    }

    /// Ends all processes but those of these sessions. The process of a team's member is ended, too, since
    /// its team begins the turn again.
    pub(super) async fn end_all_but(&mut self, sessions: impl Iterator<Item = &Facts>) {
        let goes_on = |facts: &&Facts| facts.ended.is_none() && facts.team_id.is_none();
        let ids: HashSet<Uuid> = sessions.filter(goes_on).map(|facts| facts.id.uuid()).collect();
        let rest = self.children.extract_if(|id, _| !ids.contains(id));
        join_all(rest.map(|(_, child)| end(child))).await;
    }
}

async fn end(child: Child) {
    if let Err(error) = child.handle().stop(Duration::ZERO).await {
        tracing::warn!(%error, pid = child.pid, "a process without a session is left");
    }
}

impl Sessions {
    /// Continues a session with its process. If that is not possible, the process is ended, and the
    /// session is restored without it. `how` says in words how a terminal ended then.
    pub(super) async fn take_over(&self, stored: StoredFacts, child: Child, how: &'static str) {
        // Copied, since the attempt consumes them and they are needed again if it fails.
        let (facts, size) = (stored.facts.clone(), stored.size);
        let handle = child.handle();
        let id = facts.id;
        let taken = match facts.mode {
            SessionMode::Pty => self.continue_terminal(stored, child).await,
            _ => self.continue_agent(stored, child).await,
        };
        let Err(refusal) = taken else { return };
        tracing::warn!(session = %id, %refusal, "its process is ended, as it cannot be continued");
        if let Err(error) = handle.stop(Duration::ZERO).await {
            tracing::warn!(session = %id, %error, "its process is left");
        }
        self.remove(id);
        self.take_up_with(StoredFacts { facts, size }, None, how).await;
        self.tell_why(id, &refusal);
    }

    /// Tells the viewers of an agent why its turn did not go on.
    fn tell_why(&self, id: SessionId, refusal: &Refusal) {
        let Some(session) = self.get(id).ok().filter(|session| !session.is_terminal) else {
            return;
        };
        let message = format!("The restart has ended the agent's process: {refusal}.");
        Feed::new(&session).event(AgentEvent::Notice { message });
    }

    async fn continue_terminal(&self, stored: StoredFacts, child: Child) -> Result<(), Refusal> {
        let last_size = stored.size.and_then(|(cols, rows)| Size::new(cols, rows).ok());
        let size = size(&child).or(last_size).unwrap_or(Size::DEFAULT);
        let session = Session::new(&self.0.shared, stored.facts, size, now());
        resume_output(&session, &child.journal).await?;
        self.begin_again_with(&session, child).await
    }

    /// Adds a session with its process to the list.
    pub(super) async fn begin_again_with(
        &self,
        session: &Arc<Session>,
        child: Child,
    ) -> Result<(), Refusal> {
        self.lock().insert(session.id, Arc::clone(session));
        let (engines, facts) = (self.engines()?, session.lock().life.facts.clone());
        let starting = engines.take_over(facts, Feed::new(session), child);
        let (engine, _) = starting.instrument(session.span.clone()).await?;
        let _first = session.engine.set(engine);
        // The journal's notes are freed once their output is on the disk.
        session.write_soon();
        Ok(())
    }

    async fn continue_agent(&self, stored: StoredFacts, child: Child) -> Result<(), Refusal> {
        let session = Session::new(&self.0.shared, stored.facts, Size::DEFAULT, now());
        continue_turns(&session).await;
        resume_output(&session, &child.journal).await?;
        self.begin_again_with(&session, child).await
    }
}

/// The size that the terminal of a process has.
fn size(child: &Child) -> Option<Size> {
    let ChildIo::Terminal(terminal) = &child.io else { return None };
    let (cols, rows) = terminal.size().ok()?;
    Size::new(cols, rows).ok()
}

/// Reads a session's output from the disk and from its journal, and its last kept screen from the journal.
async fn resume_output(session: &Arc<Session>, journal: &Arc<Journal>) -> Result<(), Refusal> {
    let (session, journal) = (Arc::clone(session), Arc::clone(journal));
    let resuming = task::spawn_blocking(move || {
        let bound = session.shared.log_bytes;
        let mut gather = Gather::new(u64::MAX, bound);
        session.history.lock().gather(&mut gather)?;
        let screen = TerminalState::of(&journal).screen.filter(|_| session.is_terminal);
        let output = Output::resumed(bound, gather.finish().chunks, journal)?;
        if let Some(screen) = screen {
            let size = session.lock().viewers.windows().size();
            *session.screen.lock() = Painter::from_journal(&screen, size);
        }
        session.lock().output = output;
        Ok::<_, io::Error>(())
    });
    let resumed = resuming.await.map_err(|error| Refusal::failed(&error))?;
    resumed.map_err(|error| Refusal::failed(&error))
}
