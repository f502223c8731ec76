//! One session: it owns its parts and connects them.
//!
//! - [`Session`]: the parts, the alarm, announcements and the end
//! - [`output`]: how output reaches viewers, screen and disk
//! - [`clients`]: how clients read and type, and answer a program's queries
//!
//! The parts are [`Life`], [`Output`], [`AttachedViewers`] and [`ClientInputs`], and outside of the
//! session's lock [`PaintedScreen`] and [`History`].
//!
//! # Locks
//!
//! A session has five locks: its own, the screen's, the history's, that of the history of turns, and that of inputs
//! with ids. Nobody waits for a disk or a process while holding the session's lock. Painting and writing take longer,
//! so the screen and the histories have locks of their own. The order is: that of inputs, the history's, the
//! screen's, the session's. A caller that needs several takes them in this order, so that two callers never wait for
//! each other. The lock of the history of turns is taken alone, or before the session's. The locks of the alarms and
//! of a client's demand come last: nothing else is locked under them.

mod clients;
mod output;

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use protocol::workspace::{
    ServerMessage, SessionId, SessionInfo, SessionMode, SessionStatus, client::WithSession,
};
use session::terminal::{query::Queries, size::Size};
use tokio::{sync::Notify, task};
use tracing::{Instrument as _, Span};

#[cfg(test)]
pub(crate) use self::clients::MOST_QUERIES;
use super::{
    attached_viewers::AttachedViewers,
    client_inputs::ClientInputs,
    clock::{AlarmTarget, now},
    life::{Life, Seen, facts::Facts, keeper::FactSource},
    output::{Output, history::History, screen::PaintedScreen, turn_log::TurnLog},
    shared::SharedState,
};
use crate::{
    engine::Engine,
    events::Event,
    refusal::{Refusal, blocking},
};

/// The output of an ended terminal without viewers is dropped from memory after this time.
const UNLOAD_AFTER: Duration = Duration::from_secs(10);

/// One session: a terminal, an agent, an adopted process.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The span of all tasks of the session, so that logs can be searched for one session.
    pub(crate) span: Span,
    pub(crate) shared: Arc<SharedState>,
    /// Whether the output is that of a terminal; otherwise it is lines of text.
    pub(crate) is_terminal: bool,
    pub(crate) engine: OnceLock<Box<dyn Engine>>,
    pub(crate) screen: PaintedScreen,
    pub(crate) history: History,
    /// The events of an agent's turns on the disk.
    pub(crate) turn_history: History,
    state: Mutex<SessionState>,
    /// Held while an input with an id is applied.
    applying: Mutex<()>,
    /// Notified when there is something new for viewers.
    pub(crate) news: Notify,
}

/// The parts that the session's lock covers. They share one lock because viewers are positions in
/// the output, and what a viewer sees must fit together. It is held only briefly.
pub(crate) struct SessionState {
    pub(crate) life: Life,
    pub(crate) output: Output,
    pub(crate) turns: TurnLog,
    pub(crate) viewers: AttachedViewers,
    pub(crate) inputs: ClientInputs,
    /// The program's queries to its terminal.
    pub(crate) queries: Queries,
    /// The time of the earliest alarm that is set.
    alarm: Option<Instant>,
}

impl Session {
    pub(crate) fn new(
        shared: &Arc<SharedState>,
        facts: Facts,
        size: Size,
        now: Instant,
    ) -> Arc<Self> {
        let id = facts.id;
        let mut inputs = ClientInputs::default();
        inputs.were_applied(&facts.prompt_ids);
        Arc::new(Self {
            id,
            // No parent: a session outlives the connection that made it.
            span: tracing::info_span!(parent: None, "session", %id),
            is_terminal: facts.mode == SessionMode::Pty,
            engine: OnceLock::new(),
            screen: PaintedScreen::new(size),
            history: History::new(shared.history_dir(id), shared.retention()),
            turn_history: History::new(shared.turns_dir(id), shared.retention()),
            state: Mutex::new(SessionState {
                life: Life::new(facts, now, shared.node.clone()),
                output: Output::new(shared.log_bytes),
                turns: TurnLog::new(),
                viewers: AttachedViewers::new(size),
                inputs,
                queries: Queries::default(),
                alarm: None,
            }),
            applying: Mutex::default(),
            news: Notify::new(),
            shared: Arc::clone(shared),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn info(&self) -> SessionInfo {
        self.lock().info()
    }

    /// The engine of a session that has not ended.
    pub(crate) fn live(&self) -> Result<&dyn Engine, Refusal> {
        if let Some(how) = &self.lock().life.facts.ended {
            return Err(Refusal::Ended(how.clone()));
        }
        let engine = self.engine.get();
        engine.map(Box::as_ref).ok_or_else(|| Refusal::Ended("nothing runs in it".to_owned()))
    }

    /// Begins with the prompts that waited when the session was stored.
    pub(crate) fn go_on(&self) {
        if let Ok(Err(refusal)) = self.live().map(|engine| engine.go_on()) {
            tracing::warn!(session = %self.id, %refusal, "prompts wait for the next one");
        }
    }

    /// Changes the state, then sets the alarm if the change makes something due earlier.
    pub(crate) fn change<T>(
        self: &Arc<Self>,
        now: Instant,
        change: impl FnOnce(&mut SessionState) -> T,
    ) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        self.rearm(&mut state, now);
        changed
    }

    /// Changes facts, and stores them before it returns. An error is only logged.
    pub(crate) fn change_stored(self: &Arc<Self>, change: impl FnOnce(&mut Life)) {
        // The lock is released at the end of this statement, because storing blocks.
        change(&mut self.lock().life);
        if let Err(error) = self.shared.keeper.keep_now(self) {
            let error = base::error::chain(&error);
            tracing::error!(session = %self.id, error, "cannot keep what an agent does");
        }
    }

    /// Announces the session's state to all clients: at once, or soon if the last announcement was
    /// just now.
    pub(crate) fn announce(self: &Arc<Self>, now: Instant) {
        self.change(now, |state| {
            state.life.note_change();
            self.announce_if_due(state, now);
        });
    }

    /// Notes that the session has ended, if it may end now (see [`Life::may_end`]). Returns whether that was noted.
    pub(crate) fn end(self: &Arc<Self>, how: String, exit_code: Option<i32>) -> bool {
        let (is_closing, now) = (self.shared.is_closing(), now());
        let is_new = self.change(now, |state| {
            let may_end = state.life.may_end(is_closing);
            if may_end {
                state.output.end_character(now);
                state.life.end(how, exit_code, is_closing, now);
            }
            may_end
        });
        if is_new {
            self.news.notify_waiters();
            // The end may have ended a character, too.
            self.write_soon();
            self.announce(now);
            self.shared.keeper.keep_soon(self);
        }
        is_new
    }

    /// Marks the session as gone, and removes its stored facts, its history and its agent's files.
    pub(crate) async fn forget(self: &Arc<Self>) -> Result<(), Refusal> {
        // Before the removal, so that neither the writer nor the keeper stores anything of the session again.
        self.lock().life.is_gone = true;
        self.news.notify_waiters();
        let session = Arc::clone(self);
        let forgetting = move || {
            // The facts first: files without facts only take room, but facts without files would be restored.
            session.shared.keeper.forget_now(session.id)?;
            session.remove_files().map_err(|error| Refusal::failed(&error))
        };
        blocking(forgetting).await
    }

    /// Removes all files of the session that can be removed. Returns the first error.
    fn remove_files(&self) -> std::io::Result<()> {
        let turns = self.turn_history.lock().remove();
        let history = self.history.lock().remove();
        turns.and(history).and(self.shared.remove_agent_dir(self.id))
    }

    /// Sets an alarm, if something is due before the earliest alarm that is set.
    fn rearm(self: &Arc<Self>, state: &mut SessionState, now: Instant) {
        let Some(due) = state.due(self.is_terminal) else { return };
        if state.alarm.is_none_or(|alarm| due < alarm) {
            state.alarm = Some(due);
            let alarmed: Arc<dyn AlarmTarget> = Arc::<Self>::clone(self);
            self.shared.alarms.set(due.max(now), Arc::downgrade(&alarmed));
        }
    }

    fn announce_if_due(&self, state: &mut SessionState, now: Instant) {
        if !state.life.take_announcement(now) {
            return;
        }
        let only_viewers_of = state.life.facts.hidden.then_some(self.id);
        let session = Box::new(state.info());
        let message = ServerMessage::SessionStatusChanged(WithSession { session });
        self.shared.events.send(Event { message, only_viewers_of, team: None });
    }

    /// Searches for the port of a development server, in a task of its own.
    fn search_port(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let searching = async move {
            let Ok(engine) = session.live() else { return };
            let pids = engine.processes().await;
            let listening = task::spawn_blocking(move || process::listening_ports(&pids)).await;
            let listening = listening.unwrap_or_default();
            let now = now();
            if session.change(now, |state| state.life.port.take(&listening, now)) {
                session.announce(now);
            }
        };
        tokio::spawn(searching.instrument(self.span.clone()));
    }
}

impl AlarmTarget for Session {
    fn alarm_rang(self: Arc<Self>, now: Instant) {
        let mut state = self.lock();
        if state.alarm.is_some_and(|alarm| alarm <= now) {
            state.alarm = None;
        }
        if state.life.is_gone {
            return;
        }
        self.announce_if_due(&mut state, now);
        let ends_character = state.output.end_character_at().is_some_and(|at| at <= now)
            && state.output.end_character(now);
        let resizes = state.viewers.windows().due_at().is_some_and(|at| at <= now);
        let searches = state.life.port.take_due(now);
        let is_alone = state.viewers.in_control().is_none();
        let answers = state.queries.take_due(is_alone, now);
        let unloads = state.unload_at().is_some_and(|at| at <= now);
        // Released here, since resizing and painting take the screen's lock, which comes before the
        // session's.
        drop(state);
        if ends_character {
            self.news.notify_waiters();
            self.write_soon();
        }
        answers.into_iter().for_each(|answer| self.answer(answer));
        if resizes {
            self.resize_if_due(now);
        }
        self.paint_if_paused(now);
        if searches {
            self.search_port();
        }
        if unloads {
            self.unload();
        }
        self.rearm(&mut self.lock(), now);
    }
}

impl FactSource for Session {
    fn id(&self) -> SessionId {
        self.id
    }

    fn stored_facts(&self) -> Option<String> {
        let state = self.lock();
        state.life.stored(state.viewers.windows().size())
    }
}

impl SessionState {
    /// The session in the clients' form.
    pub(crate) fn info(&self) -> SessionInfo {
        self.life.info(&Seen {
            attached_clients: self.viewers.len(),
            viewers_have_left: self.viewers.have_left(),
            last_seq: self.output.last_seq(),
            asks: self.inputs.questions.open().count(),
        })
    }

    pub(crate) fn status(&self) -> SessionStatus {
        self.life.status(self.viewers.have_left())
    }

    /// The next time at which something is due.
    fn due(&self, is_terminal: bool) -> Option<Instant> {
        let times = [
            self.life.announce_at(),
            self.viewers.windows().due_at(),
            self.output.end_character_at(),
            self.life.port.due_at(),
            self.queries.due_at(),
            self.unload_at(),
            self.output.paint_at().filter(|_| is_terminal),
        ];
        times.into_iter().flatten().min()
    }

    /// When the output of an ended terminal without viewers may be dropped from memory.
    fn unload_at(&self) -> Option<Instant> {
        let may_unload =
            self.life.is_ended_terminal() && self.viewers.is_empty() && self.output.may_unload();
        may_unload.then(|| self.life.quiet_since + UNLOAD_AFTER)
    }
}
