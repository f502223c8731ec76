//! The sessions of this machine: their engines, output and viewers, kept over restarts.
//!
//! - [`Sessions`]: all sessions; `create`, `restore`: how sessions are made and restored
//! - [`session`]: one session; [`facts`]: its stored facts; [`new`]: the description of a new
//!   session
//! - [`feed`]: the interface by which an engine reports to its session
//! - [`output`]: the output, kept once; [`printing`]: how output enters; [`painter`]: the screen;
//!   [`painting`]: when the screen is painted, and by which thread; [`history`]: output on the
//!   disk; [`past`]: reading earlier output; [`asides`]: messages beside the output
//! - [`attachment`]: one client's stream of a session; [`viewers`]: the position of each viewer;
//!   [`stream`]: the next message for each viewer; `talk`: clients' calls
//! - [`windows`]: the terminal's size; [`inputs`]: the inputs that were applied; [`questions`]: an
//!   agent's open questions; [`port`], `port_search`: the port of a development server; `ending`:
//!   the end
//! - [`engine_starter`]: starts engines; [`turn_follower`]: follows turns for teams; [`commons`]: the
//!   state that all sessions share; [`alarms`], `clock`: time; [`keeper`]: stores facts

mod activity;
mod alarms;
mod asides;
pub(crate) mod attachment;
mod client_id;
mod clock;
mod commons;
mod create;
mod ending;
mod engine_starter;
pub(crate) mod facts;
pub(crate) mod feed;
mod history;
mod inputs;
mod keeper;
pub(crate) mod new;
mod output;
mod painter;
mod painting;
mod past;
mod port;
mod port_search;
mod printing;
mod questions;
mod restore;
pub(crate) mod session;
mod stream;
mod talk;
mod turn_follower;
mod viewers;
mod windows;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::Ordering},
};

use ::session::terminal::size::Size;
use futures_util::StreamExt as _;
use protocol::workspace::{
    ServerMessage, SessionId, SessionInfo, SessionStatus, client::OfSession,
};
use tokio::task::{self, JoinHandle};
use tracing::Instrument as _;

pub(crate) use self::{
    activity::Activity,
    commons::Dependencies,
    engine_starter::{EngineStarter, Started},
    feed::Feed,
};
pub use self::{
    attachment::{Attachment, Streamed},
    client_id::ClientId,
    facts::{Facts, TranscriptPosition},
    new::{NewEngine, NewSession},
    talk::Prompted,
    turn_follower::TurnFollower,
};
use self::{clock::now, commons::Commons, session::Session};
use crate::{counts::Counts, events::Event, refusal::Refusal, settings::Settings};

/// The most sessions that are ended at the same time.
const ENDED_AT_ONCE: usize = 64;

/// The sessions of this machine. Clones share them.
#[derive(Clone)]
pub struct Sessions(Arc<Inner>);

/// A weak reference to all sessions.
#[derive(Clone)]
pub struct WeakSessions(Weak<Inner>);

impl WeakSessions {
    /// The sessions; `None` if the workspace is gone.
    pub fn upgrade(&self) -> Option<Sessions> {
        self.0.upgrade().map(Sessions)
    }
}

struct Inner {
    commons: Arc<Commons>,
    all: Mutex<BTreeMap<SessionId, Arc<Session>>>,
    ringing: Mutex<Option<JoinHandle<()>>>,
}

/// Part of a session's output, for `history`.
#[derive(Debug)]
pub struct PastOutput {
    /// The number of its first chunk; 0 if it is empty.
    pub from_seq: u64,
    /// The number of its last chunk; 0 if it is empty.
    pub to_seq: u64,
    /// The output.
    pub data: String,
    /// Whether there is earlier output.
    pub more: bool,
}

impl Sessions {
    /// Without any sessions yet.
    pub(crate) fn new(settings: &Settings, dependencies: Dependencies) -> Self {
        let commons = Commons::new(settings, dependencies);
        let (all, ringing) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { commons: Arc::new(commons), all, ringing }))
    }

    /// For parts that the sessions lead to.
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
        Ok(self.get(id)?.lock().facts.clone())
    }

    /// The state of a session in the clients' form.
    pub fn info(&self, id: SessionId) -> Result<SessionInfo, Refusal> {
        Ok(self.get(id)?.info())
    }

    /// Refuses arguments that this caller may not give to an agent.
    pub fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        self.0.commons.engines()?.check_args(args, administrator)
    }

    /// Gives a session another name, stores and announces it.
    pub async fn rename(&self, id: SessionId, name: String) -> Result<SessionInfo, Refusal> {
        self.keep_change(id, |facts| facts.name = Some(name)).await
    }

    /// Ends a session, and removes it with its history. All clients get `session_killed`; of a
    /// hidden session only its viewers.
    pub async fn kill(&self, id: SessionId) -> Result<(), Refusal> {
        let session = self.remove(id).ok_or(Refusal::UnknownSession(id))?;
        let facts = session.lock().facts.clone();
        if let Some(engine) = session.engine.get() {
            engine.stop().await;
        }
        let forgotten = session.forget().await;
        let only_viewers_of = facts.hidden.then_some(id);
        let message = ServerMessage::SessionKilled(OfSession { session_id: id });
        self.0.commons.events.send(Event { message, only_viewers_of, team: None });
        if facts.team_id.is_some() {
            self.0.commons.member_gone(id);
        }
        forgotten
    }

    /// The figures of all sessions.
    pub(crate) fn counts(&self) -> Counts {
        let all = self.all();
        let exited = |session: &&Arc<Session>| session.info().status == SessionStatus::Exited;
        Counts {
            sessions: all.len(),
            live: all.len() - all.iter().filter(exited).count(),
            output_bytes: self.0.commons.output_bytes.load(Ordering::Relaxed),
            resyncs: self.0.commons.resyncs.load(Ordering::Relaxed),
        }
    }

    /// Ends all engines, then writes the remaining output and facts.
    pub(crate) async fn shut_down(&self) {
        self.0.commons.close();
        let all = self.all();
        futures_util::stream::iter(&all)
            .for_each_concurrent(ENDED_AT_ONCE, |session| async {
                if let Some(engine) = session.engine.get() {
                    engine.stop().await;
                }
            })
            .await;
        self.0.commons.writer.flush().await;
        for session in &all {
            if let Err(refusal) = self.0.commons.keeper.keep(session).await {
                tracing::error!(%refusal, "cannot keep what sessions are");
                break;
            }
        }
    }

    fn begin(&self) {
        self.0.commons.writer.start();
        self.0.commons.painting.start();
        let ringing = tokio::spawn(Arc::clone(&self.0.commons.alarms).run());
        *self.0.ringing.lock().unwrap_or_else(PoisonError::into_inner) = Some(ringing);
    }

    /// Adds a session. If there are too many, the exited session that was active least recently is
    /// dropped to make room.
    fn add(&self, facts: Facts, size: Size) -> Result<Arc<Session>, Refusal> {
        let most = self.0.commons.max_sessions;
        let is_full = self.lock().len() >= most;
        if is_full {
            let oldest = self.oldest_exited();
            let oldest = oldest.ok_or(Refusal::TooMany { what: "sessions", most })?;
            self.drop_exited(&oldest);
        }
        let session = Session::new(&self.0.commons, facts, size, now());
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
        let id = session.id;
        let (session, span) = (Arc::clone(session), session.span.clone());
        let forgetting = async move {
            if let Err(refusal) = session.forget().await {
                tracing::error!(%refusal, "cannot forget a session");
            }
            let message = ServerMessage::SessionKilled(OfSession { session_id: id });
            sessions.0.commons.events.tell(message);
        };
        tokio::spawn(forgetting.instrument(span));
    }

    async fn keep_change(
        &self,
        id: SessionId,
        change: impl FnOnce(&mut Facts),
    ) -> Result<SessionInfo, Refusal> {
        let session = self.get(id)?;
        change(&mut session.lock().facts);
        self.0.commons.keeper.keep(&session).await?;
        session.tell(now());
        Ok(session.info())
    }

    fn get(&self, id: SessionId) -> Result<Arc<Session>, Refusal> {
        self.lock().get(&id).cloned().ok_or(Refusal::UnknownSession(id))
    }

    fn remove(&self, id: SessionId) -> Option<Arc<Session>> {
        let removed = self.lock().remove(&id);
        if let Some(session) = &removed {
            session.lock().is_removed = true;
        }
        removed
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Marks the session as gone, and removes its history, its agent's files and its stored facts.
    async fn forget(self: &Arc<Self>) -> Result<(), Refusal> {
        // First, so that neither the writer nor the keeper stores anything of the session again.
        self.lock().is_gone = true;
        self.news.notify_waiters();
        let session = Arc::clone(self);
        let forgotten = task::spawn_blocking(move || {
            session.segments().remove()?;
            remove_dir(&session.commons.agent_dir(session.id))?;
            Ok::<_, std::io::Error>(session.commons.keeper.forget_now(session.id))
        });
        let forgotten = forgotten.await.map_err(|error| Refusal::failed(&error))?;
        Ok(forgotten.map_err(|error| Refusal::failed(&error))??)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.commons.writer.end();
        self.commons.painting.end();
        let ringing = self.ringing.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(ringing) = ringing.take() {
            ringing.abort();
        }
    }
}

fn remove_dir(dir: &std::path::Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
