//! All sessions of this machine.
//!
//! - [`Sessions`]: the list, and the calls of all its users; [`calls`]: the calls of clients
//! - [`create`], [`restore`], [`takeover`]: how sessions are made, restored, and taken over with their
//!   processes

mod calls;
mod create;
mod restore;
mod takeover;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::Ordering},
};

use ::session::terminal::size::Size;
use futures_util::{StreamExt as _, future::BoxFuture};
use protocol::workspace::{
    ServerMessage, SessionId, SessionInfo, SessionMode, SessionStatus, client::OfSession,
};
use store::WorkspaceStore;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

pub use self::calls::PromptAcceptance;
pub(crate) use self::takeover::Survivors;
use super::{
    clock::now,
    engine_starter::EngineStarter,
    life::facts::Facts,
    session::Session,
    shared::{Counts, SharedState, TurnFollower},
};
use crate::{
    engine::Engine,
    events::{Event, Events},
    host::EngineHost,
    member_tokens::MemberTokens,
    projects::Projects,
    refusal::Refusal,
    settings::Settings,
};

/// The most sessions that are ended at the same time.
const ENDED_AT_ONCE: usize = 64;

/// The parts of the workspace that sessions use.
pub(crate) struct Dependencies {
    pub(crate) store: Arc<dyn WorkspaceStore>,
    pub(crate) projects: Arc<Projects>,
    pub(crate) events: Events,
    pub(crate) member_tokens: Arc<MemberTokens>,
    /// Weak, as is the follower of turns: both lead back to the sessions.
    pub(crate) engines: Weak<dyn EngineStarter>,
    pub(crate) turns: Weak<dyn TurnFollower>,
}

/// The sessions of this machine. Clones share them.
#[derive(Clone)]
pub struct Sessions(pub(in crate::sessions) Arc<Inner>);

/// A weak reference to all sessions.
#[derive(Clone)]
pub struct WeakSessions(Weak<Inner>);

impl WeakSessions {
    /// The sessions; `None` if the workspace is gone.
    pub fn upgrade(&self) -> Option<Sessions> {
        self.0.upgrade().map(Sessions)
    }
}

pub(in crate::sessions) struct Inner {
    pub(in crate::sessions) shared: Arc<SharedState>,
    pub(in crate::sessions) projects: Arc<Projects>,
    /// Weak, because engines lead back to the sessions.
    engines: Weak<dyn EngineStarter>,
    /// The list is locked only to look up or change it. No other lock is taken meanwhile, so a session
    /// that is locked for long holds up no other.
    all: Mutex<BTreeMap<SessionId, Arc<Session>>>,
    ringing: Mutex<Option<JoinHandle<()>>>,
}

impl Sessions {
    /// Without any sessions yet.
    pub(crate) fn new(settings: &Settings, dependencies: Dependencies) -> Self {
        let Dependencies { store, projects, events, member_tokens, engines, turns } = dependencies;
        let node = projects.node().clone();
        let shared = SharedState::new(settings, store, events, member_tokens, turns, node);
        let shared = Arc::new(shared);
        let (all, ringing) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { shared, projects, engines, all, ringing }))
    }

    /// A weak reference, which does not keep the sessions alive.
    pub fn downgrade(&self) -> WeakSessions {
        WeakSessions(Arc::downgrade(&self.0))
    }

    /// All sessions, the oldest first; hidden ones only with `include_hidden`.
    pub fn list(&self, include_hidden: bool) -> Vec<SessionInfo> {
        let infos = self.all().into_iter().map(|session| session.info());
        let mut infos: Vec<_> = infos.filter(|info| include_hidden || !info.hidden).collect();
        infos.sort_by_key(|info| (info.created_at, info.id));
        infos
    }

    /// The current facts of a session.
    pub fn facts(&self, id: SessionId) -> Result<Facts, Refusal> {
        Ok(self.get(id)?.lock().life.facts.clone())
    }

    /// Whether there is such a session on this machine.
    pub fn has(&self, id: SessionId) -> bool {
        self.lock().contains_key(&id)
    }

    /// The state of a session in the clients' form.
    pub fn info(&self, id: SessionId) -> Result<SessionInfo, Refusal> {
        Ok(self.get(id)?.info())
    }

    /// Refuses arguments that this caller may not give to an agent.
    pub fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        self.engines()?.check_args(args, administrator)
    }

    /// Gives a session another name, which is stored and announced.
    pub async fn rename(&self, id: SessionId, name: String) -> Result<SessionInfo, Refusal> {
        self.keep_change(id, |facts| facts.name = Some(name)).await
    }

    /// Ends a session, and removes it with its history. All clients get `session_killed`; of a
    /// hidden session only its viewers.
    pub async fn kill(&self, id: SessionId) -> Result<(), Refusal> {
        let session = self.get(id)?;
        // Before the engine stops, since an engine that stops asks whether its session was removed. Of two
        // callers only one gets past this line.
        session.lock().life.begin_removal()?;
        self.remove(id);
        let facts = session.lock().life.facts.clone();
        if let Some(engine) = session.engine.get() {
            engine.stop().await;
        }
        let forgotten = session.forget().await;
        // Announced even if files are left: the session is not in the list any more.
        self.announce_removal(&facts);
        if facts.team_id.is_some() {
            self.0.shared.member_gone(id);
        }
        forgotten
    }

    /// Tells all clients that a session was removed; of a hidden session only its viewers.
    fn announce_removal(&self, facts: &Facts) {
        let only_viewers_of = facts.hidden.then_some(facts.id);
        let message = ServerMessage::SessionKilled(OfSession { session_id: facts.id });
        self.0.shared.events.send(Event { message, only_viewers_of, team: None });
    }

    /// The numbers for health and metrics.
    pub(crate) fn counts(&self) -> Counts {
        let all = self.all();
        let modes = all.iter().map(|session| session.info());
        let live = modes.filter(|info| info.status != SessionStatus::Exited);
        let live: Vec<SessionMode> = live.map(|info| info.mode).collect();
        Counts {
            sessions: all.len(),
            live: live.len(),
            terminals: live.iter().filter(|mode| **mode == SessionMode::Pty).count(),
            output_bytes: self.0.shared.output_bytes.load(Ordering::Relaxed),
            resyncs: self.0.shared.resyncs.load(Ordering::Relaxed),
        }
    }

    /// Ends all engines, then writes the remaining output and facts.
    pub(crate) async fn shut_down(&self) {
        self.0.shared.close();
        self.of_each_engine(|engine| engine.stop()).await;
        self.keep_all().await;
    }

    /// Leaves all processes to the next daemon, then writes the remaining output and facts.
    pub(crate) async fn release(&self) {
        self.0.shared.close();
        self.of_each_engine(|engine| engine.release()).await;
        self.keep_all().await;
    }

    async fn of_each_engine(&self, act: impl Fn(&dyn Engine) -> BoxFuture<'_, ()>) {
        futures_util::stream::iter(&self.all())
            .for_each_concurrent(ENDED_AT_ONCE, |session| async {
                if let Some(engine) = session.engine.get() {
                    act(&**engine).await;
                }
            })
            .await;
    }

    async fn keep_all(&self) {
        self.0.shared.writer.flush().await;
        for session in &self.all() {
            if let Err(refusal) = self.0.shared.keeper.keep(session).await {
                tracing::error!(%refusal, "cannot keep what sessions are");
                break;
            }
        }
    }

    /// Starts the threads and the task that all sessions share.
    pub(in crate::sessions) fn begin(&self) {
        self.0.shared.writer.start();
        self.0.shared.painting.start();
        let ringing = tokio::spawn(Arc::clone(&self.0.shared.alarms).run());
        *self.0.ringing.lock().unwrap_or_else(PoisonError::into_inner) = Some(ringing);
    }

    /// Adds a session. If there are too many, the exited session that was active least recently is
    /// dropped to make room.
    pub(in crate::sessions) fn add(
        &self,
        facts: Facts,
        size: Size,
    ) -> Result<Arc<Session>, Refusal> {
        let most = self.0.shared.max_sessions;
        // The list is not locked during the search, which locks each session.
        let is_full = self.lock().len() >= most;
        if is_full {
            let oldest = self.oldest_exited();
            let oldest = oldest.ok_or(Refusal::TooMany { what: "sessions", most })?;
            self.drop_exited(&oldest);
        }
        let session = Session::new(&self.0.shared, facts, size, now());
        self.lock().insert(session.id, Arc::clone(&session));
        Ok(session)
    }

    fn oldest_exited(&self) -> Option<Arc<Session>> {
        let exited = self.all().into_iter().map(|session| (session.info(), session));
        let exited = exited.filter(|(info, _)| info.status == SessionStatus::Exited);
        exited.min_by_key(|(info, _)| info.last_active).map(|(_, session)| session)
    }

    fn drop_exited(&self, session: &Arc<Session>) {
        self.remove(session.id);
        let sessions = self.clone();
        let facts = session.lock().life.facts.clone();
        let (session, span) = (Arc::clone(session), session.span.clone());
        let forgetting = async move {
            if let Err(refusal) = session.forget().await {
                tracing::error!(%refusal, "cannot forget a session");
            }
            sessions.announce_removal(&facts);
        };
        tokio::spawn(forgetting.instrument(span));
    }

    async fn keep_change(
        &self,
        id: SessionId,
        change: impl FnOnce(&mut Facts),
    ) -> Result<SessionInfo, Refusal> {
        let session = self.get(id)?;
        {
            let mut state = session.lock();
            state.life.may_change()?;
            change(&mut state.life.facts);
        }
        self.0.shared.keeper.keep(&session).await?;
        session.announce(now());
        Ok(session.info())
    }

    /// Lets agents begin with the prompts that waited when their sessions were stored.
    pub(crate) fn go_on(&self) {
        self.all().iter().for_each(|session| session.go_on());
    }

    /// The parts that engines use; an error while the workspace ends.
    pub(in crate::sessions) fn host(&self) -> Result<Arc<EngineHost>, Refusal> {
        let host = self.engines()?.host();
        host.ok_or_else(|| Refusal::invalid("nothing runs here"))
    }

    /// The part that starts engines; an error while the workspace ends.
    pub(in crate::sessions) fn engines(&self) -> Result<Arc<dyn EngineStarter>, Refusal> {
        let engines = self.0.engines.upgrade().filter(|_| !self.0.shared.is_closing());
        engines.ok_or_else(|| Refusal::Failed("the workspace is shutting down".to_owned()))
    }

    pub(in crate::sessions) fn get(&self, id: SessionId) -> Result<Arc<Session>, Refusal> {
        self.lock().get(&id).cloned().ok_or(Refusal::UnknownSession(id))
    }

    pub(in crate::sessions) fn remove(&self, id: SessionId) -> Option<Arc<Session>> {
        let removed = self.lock().remove(&id);
        if let Some(session) = &removed {
            session.lock().life.is_removed = true;
        }
        removed
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    pub(in crate::sessions) fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.writer.end();
        self.shared.painting.end();
        let ringing = self.ringing.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(ringing) = ringing.take() {
            ringing.abort();
        }
    }
}
