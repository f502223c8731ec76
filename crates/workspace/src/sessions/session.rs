//! One session.
//!
//! A session has three locks: the state's, the screen's and the files'. Nothing waits while it
//! holds the state's lock. Painting and writing take longer, so the screen and the files have locks
//! of their own. A caller that needs several locks takes the screen's or the files' before the
//! state's.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use protocol::workspace::{
    ServerMessage, SessionId, SessionInfo, SessionMode, SessionStatus, client::WithSession,
};
use session::terminal::size::Size;
use tokio::sync::Notify;
use tracing::Span;

use super::{
    activity::Activity, asides::Asides, commons::Commons, facts::Facts, history::Segments,
    inputs::Inputs, output::Output, painter::Painter, port::PortSearch, questions::Questions,
    viewers::Viewers, windows::Windows,
};
use crate::{engine::Engine, events::Event, refusal::Refusal};

/// The shortest time between two announcements of a session's changes.
const BETWEEN_TELLING: Duration = Duration::from_millis(100);
/// The output of an ended terminal without viewers is dropped from memory after this time.
const NAP_AFTER: Duration = Duration::from_secs(10);

/// One session: a terminal, an agent, an adopted process.
pub(crate) struct Session {
    pub(super) id: SessionId,
    /// The span of all tasks of the session, so that logs can be searched for one session.
    pub(super) span: Span,
    pub(super) commons: Arc<Commons>,
    /// Whether the output is that of a terminal; otherwise it is lines of text.
    pub(super) is_terminal: bool,
    pub(super) engine: OnceLock<Box<dyn Engine>>,
    pub(super) painter: Mutex<Painter>,
    pub(super) segments: Mutex<Segments>,
    pub(super) state: Mutex<SessionState>,
    /// Notified when there is something new for viewers.
    pub(super) news: Notify,
    /// Notified when some output was painted.
    pub(super) painted: Notify,
}

/// The part of a session whose lock is held only briefly.
pub(super) struct SessionState {
    pub(super) facts: Facts,
    pub(super) activity: Activity,
    pub(super) output: Output,
    pub(super) asides: Asides,
    pub(super) viewers: Viewers,
    pub(super) windows: Windows,
    pub(super) inputs: Inputs,
    pub(super) questions: Questions,
    pub(super) port: PortSearch,
    /// Whether a change has yet to be announced, and the time of the last announcement.
    pub(super) to_tell: bool,
    told: Option<Instant>,
    /// When a viewer left last, or the session ended if that was later.
    pub(super) quiet_since: Instant,
    /// The time of the earliest alarm that is set.
    alarm: Option<Instant>,
    /// Whether the session was removed from the list of sessions.
    pub(super) is_removed: bool,
    /// Whether the session's stored data is removed, so that nothing of it may be stored any more.
    pub(super) is_gone: bool,
}

impl Session {
    pub(super) fn new(commons: &Arc<Commons>, facts: Facts, size: Size, now: Instant) -> Arc<Self> {
        let id = facts.id;
        let segments = Segments::new(commons.history_dir(id), commons.retention());
        Arc::new(Self {
            id,
            // No parent: a session outlives the connection that made it.
            span: tracing::info_span!(parent: None, "session", %id),
            is_terminal: facts.mode == SessionMode::Pty,
            engine: OnceLock::new(),
            painter: Mutex::new(Painter::new(size)),
            segments: Mutex::new(segments),
            state: Mutex::new(SessionState::new(facts, size, commons.log_bytes, now)),
            news: Notify::new(),
            painted: Notify::new(),
            commons: Arc::clone(commons),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn info(&self) -> SessionInfo {
        self.lock().info()
    }

    /// The engine of a session that has not ended.
    pub(super) fn live(&self) -> Result<&dyn Engine, Refusal> {
        if let Some(how) = &self.lock().facts.ended {
            return Err(Refusal::Ended(how.clone()));
        }
        let engine = self.engine.get();
        engine.map(Box::as_ref).ok_or_else(|| Refusal::Ended("nothing runs in it".to_owned()))
    }

    /// Changes the state, and sets the alarm for what the change makes due.
    pub(super) fn change<T>(
        self: &Arc<Self>,
        now: Instant,
        change: impl FnOnce(&mut SessionState) -> T,
    ) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        self.rearm(&mut state, now);
        changed
    }

    /// Announces the session's state to all clients: at once, or soon if the last announcement was
    /// just now.
    pub(super) fn tell(self: &Arc<Self>, now: Instant) {
        self.change(now, |state| {
            state.to_tell = true;
            self.tell_if_due(state, now);
        });
    }

    /// Sets an alarm, if something is due before the alarm that is set.
    pub(super) fn rearm(self: &Arc<Self>, state: &mut SessionState, now: Instant) {
        let Some(due) = state.due(self.is_terminal) else { return };
        if state.alarm.is_none_or(|alarm| due < alarm) {
            state.alarm = Some(due);
            self.commons.alarms.set(due.max(now), Arc::downgrade(self));
        }
    }

    /// Does all that is due.
    pub(super) fn alarm_rang(self: &Arc<Self>, now: Instant) {
        let mut state = self.lock();
        if state.alarm.is_some_and(|alarm| alarm <= now) {
            state.alarm = None;
        }
        if state.is_gone {
            return;
        }
        self.tell_if_due(&mut state, now);
        self.end_character_if_due(&mut state, now);
        let resizes = state.windows.due_at().is_some_and(|at| at <= now);
        let searches = state.port.take_due(now);
        let naps = state.nap_at().is_some_and(|at| at <= now);
        // Released first: resizing and painting take the screen's lock, which comes before the
        // state's.
        drop(state);
        if resizes {
            self.resize_if_due(now);
        }
        self.paint_if_paused(now);
        if searches {
            self.search_port();
        }
        if naps {
            self.nap();
        }
        let mut state = self.lock();
        self.rearm(&mut state, now);
    }

    fn tell_if_due(&self, state: &mut SessionState, now: Instant) {
        if state.tell_at().is_none_or(|at| at > now) || state.is_gone {
            return;
        }
        (state.to_tell, state.told) = (false, Some(now));
        let only_viewers_of = state.facts.hidden.then_some(self.id);
        let session = Box::new(state.info());
        let message = ServerMessage::SessionStatusChanged(WithSession { session });
        self.commons.events.send(Event { message, only_viewers_of, team: None });
    }
}

impl SessionState {
    fn new(facts: Facts, size: Size, log_bytes: usize, now: Instant) -> Self {
        let port = PortSearch::new(&facts, now);
        Self {
            facts,
            activity: Activity::Idle,
            output: Output::new(log_bytes),
            asides: Asides::default(),
            viewers: Viewers::default(),
            windows: Windows::new(size),
            inputs: Inputs::default(),
            questions: Questions::default(),
            port,
            to_tell: false,
            told: None,
            quiet_since: now,
            alarm: None,
            is_removed: false,
            is_gone: false,
        }
    }

    /// The session's state in the clients' form.
    pub(super) fn info(&self) -> SessionInfo {
        let facts = &self.facts;
        SessionInfo {
            id: facts.id,
            name: facts.name.clone(),
            mode: facts.mode,
            status: self.status(),
            working_dir: facts.working_dir.clone(),
            model: facts.model.clone(),
            created_at: facts.created_at,
            last_active: facts.last_active,
            attached_clients: u32::try_from(self.viewers.len()).unwrap_or(u32::MAX),
            adopted_pid: facts.adopted.map(|(pid, _)| pid),
            project_id: facts.project_id,
            node_id: None,
            kind: facts.kind.clone(),
            provider: facts.provider.clone(),
            hidden: facts.hidden,
            team_id: facts.team_id,
            is_team_leader: facts.is_team_leader,
            reachable: true,
            dev_server_port: self.port.found(),
            exit_code: facts.exit_code,
            last_seq: self.output.last_seq(),
            tags: facts.tags.clone(),
        }
    }

    pub(super) fn status(&self) -> SessionStatus {
        match (self.facts.mode, self.activity) {
            _ if self.facts.ended.is_some() => SessionStatus::Exited,
            (SessionMode::Pty, _) if self.viewers.have_left() => SessionStatus::Detached,
            (SessionMode::Sdk, Activity::Idle) => SessionStatus::Idle,
            _ => SessionStatus::Running,
        }
    }

    /// Notes that the session is active now.
    pub(super) fn touch(&mut self) {
        self.facts.last_active = Timestamp::now();
    }

    /// The stored form of its facts, with the size; `None` for a session that is gone.
    pub(super) fn kept(&self) -> Option<String> {
        if self.is_gone {
            return None;
        }
        let size = self.windows.size();
        super::facts::write(&self.facts, (size.cols(), size.rows()))
    }

    /// The next time at which something is due.
    fn due(&self, is_terminal: bool) -> Option<Instant> {
        let paints = self.output.paint_at().filter(|_| is_terminal);
        let times = [
            self.tell_at(),
            self.windows.due_at(),
            self.output.end_character_at(),
            self.port.due_at(),
            self.nap_at(),
            paints,
        ];
        times.into_iter().flatten().min()
    }

    fn tell_at(&self) -> Option<Instant> {
        let told = self.told.map(|told| told + BETWEEN_TELLING);
        self.to_tell.then(|| told.unwrap_or(self.quiet_since))
    }

    fn nap_at(&self) -> Option<Instant> {
        let may_nap = self.facts.mode == SessionMode::Pty
            && self.facts.ended.is_some()
            && self.viewers.is_empty()
            && self.output.may_nap();
        may_nap.then(|| self.quiet_since + NAP_AFTER)
    }
}
