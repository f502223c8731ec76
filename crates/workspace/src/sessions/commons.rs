//! The state that all sessions share.

use std::{
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use protocol::workspace::SessionId;
use session::terminal::log::Retention;
use store::WorkspaceStore;

use super::{
    alarms::Alarms, engine_starter::EngineStarter, history::writer::Writer, keeper::Keeper,
    painting::Painting, turn_follower::TurnFollower,
};
use crate::{
    events::Events, member_tokens::MemberTokens, projects::Projects, refusal::Refusal,
    settings::Settings,
};

/// The smallest log of a session, in bytes.
const SMALLEST_LOG: usize = 64 * 1024;
/// The smallest and the largest segment of a history, in bytes.
const SEGMENT: (u64, u64) = (64 * 1024, 1024 * 1024);

/// The parts of the workspace that sessions use.
pub(crate) struct Dependencies {
    pub(crate) store: Arc<dyn WorkspaceStore>,
    pub(crate) projects: Arc<Projects>,
    pub(crate) events: Events,
    pub(crate) member_tokens: Arc<MemberTokens>,
    /// Weak, as are the followers of turns: both lead back to the sessions.
    pub(crate) engines: Weak<dyn EngineStarter>,
    pub(crate) turns: Weak<dyn TurnFollower>,
}

/// The state that all sessions share.
pub(super) struct Commons {
    engines: Weak<dyn EngineStarter>,
    turns: Weak<dyn TurnFollower>,
    pub(super) projects: Arc<Projects>,
    member_tokens: Arc<MemberTokens>,
    pub(super) events: Events,
    pub(super) alarms: Arc<Alarms>,
    pub(super) writer: Arc<Writer>,
    pub(super) painting: Arc<Painting>,
    pub(super) keeper: Arc<Keeper>,
    /// The most output of a session that is kept in memory, in bytes.
    pub(super) log_bytes: usize,
    pub(super) max_sessions: usize,
    /// How long a client that fell behind may take nothing before it gets no more output.
    pub(super) lag_timeout: Duration,
    retention: Retention,
    /// The directory of histories and of agents' private files.
    dir: PathBuf,
    /// The bytes of output of all sessions since the start.
    pub(super) output_bytes: AtomicU64,
    /// How often a client fell behind and was given a snapshot.
    pub(super) resyncs: AtomicU64,
    /// Whether the daemon is ending.
    closing: AtomicBool,
}

impl Commons {
    pub(super) fn new(settings: &Settings, dependencies: Dependencies) -> Self {
        let Dependencies { store, projects, events, member_tokens, engines, turns } = dependencies;
        let total = settings.history_bytes;
        let segment = (total / 16).clamp(SEGMENT.0, SEGMENT.1);
        Self {
            engines,
            turns,
            projects,
            member_tokens,
            events,
            alarms: Arc::default(),
            writer: Arc::default(),
            painting: Arc::default(),
            keeper: Arc::new(Keeper::new(store)),
            log_bytes: settings.log_bytes.max(SMALLEST_LOG),
            max_sessions: settings.max_sessions,
            lag_timeout: settings.lag_timeout,
            retention: Retention { total, segment },
            dir: settings.dir.clone(),
            output_bytes: AtomicU64::new(0),
            resyncs: AtomicU64::new(0),
            closing: AtomicBool::new(false),
        }
    }

    /// Starts engines; an error while the workspace ends.
    pub(super) fn engines(&self) -> Result<Arc<dyn EngineStarter>, Refusal> {
        let engines = self.engines.upgrade().filter(|_| !self.is_closing());
        engines.ok_or_else(|| Refusal::Failed("the workspace is shutting down".to_owned()))
    }

    /// Follows the turns of members of teams; `None` while the workspace ends.
    pub(super) fn turns(&self) -> Option<Arc<dyn TurnFollower>> {
        self.turns.upgrade().filter(|_| !self.is_closing())
    }

    /// A member of a team was killed, or has ended: its token is no longer valid.
    pub(super) fn member_gone(&self, session: SessionId) {
        self.member_tokens.forget(session);
        if let Some(follower) = self.turns() {
            follower.session_gone(session);
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Notes that the daemon ends. No engine is started any more, and a session that ends is
    /// recorded as ended with the daemon.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub(super) fn history_dir(&self, id: SessionId) -> PathBuf {
        self.dir.join("history").join(id.to_string())
    }

    /// The directory of a session's private agent files.
    pub(super) fn agent_dir(&self, id: SessionId) -> PathBuf {
        self.dir.join("agents").join(id.to_string())
    }

    pub(super) const fn retention(&self) -> Retention {
        self.retention
    }
}
