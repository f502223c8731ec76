//! The state that all sessions share.

use std::{
    io,
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
    clock::Alarms,
    life::keeper::Keeper,
    output::{
        history::{remove_all, writer::Writer},
        painting::PaintQueue,
    },
};
use crate::{
    events::Events,
    member_tokens::MemberTokens,
    settings::{NodeSlot, Settings},
};

/// The smallest log of a session, in bytes.
const SMALLEST_LOG: usize = 64 * 1024;
/// The smallest and the largest segment of a history, in bytes.
const SEGMENT: (u64, u64) = (64 * 1024, 1024 * 1024);

/// Follows the turns of sessions that belong to a team. Engines call it, so it must not wait.
pub trait TurnFollower: Send + Sync {
    /// A turn of a member has begun.
    fn turn_started(&self, session: SessionId, turn: u64);

    /// A turn of a member has ended: whether it succeeded, and its final text.
    fn turn_ended(&self, session: SessionId, turn: u64, ok: bool, text: Option<String>);

    /// A member was killed, or has ended.
    fn session_gone(&self, session: SessionId);
}

/// Numbers about all sessions, for health and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions, including those that have ended.
    pub sessions: usize,
    /// Sessions that have not ended.
    pub live: usize,
    /// Terminals that have not ended.
    pub terminals: usize,
    /// Bytes of output since the start.
    pub output_bytes: u64,
    /// How often a client fell behind and was sent a snapshot.
    pub resyncs: u64,
}

/// The state that all sessions share.
pub(crate) struct SharedState {
    turns: Weak<dyn TurnFollower>,
    /// The node id of this machine.
    pub(crate) node: NodeSlot,
    member_tokens: Arc<MemberTokens>,
    pub(crate) events: Events,
    pub(crate) alarms: Arc<Alarms>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) painting: Arc<PaintQueue>,
    pub(crate) keeper: Arc<Keeper>,
    /// The most output of a session that is kept in memory, in bytes.
    pub(crate) log_bytes: usize,
    pub(crate) max_sessions: usize,
    /// How long a client that fell behind may take nothing before it gets no more output.
    pub(crate) lag_timeout: Duration,
    retention: Retention,
    /// The directory of histories and of agents' private files.
    dir: PathBuf,
    /// The bytes of output of all sessions since the start.
    pub(crate) output_bytes: AtomicU64,
    /// How often a client fell behind and was given a snapshot.
    pub(crate) resyncs: AtomicU64,
    /// Whether the daemon is ending.
    closing: AtomicBool,
}

impl SharedState {
    pub(crate) fn new(
        settings: &Settings,
        store: Arc<dyn WorkspaceStore>,
        events: Events,
        member_tokens: Arc<MemberTokens>,
        turns: Weak<dyn TurnFollower>,
        node: NodeSlot,
    ) -> Self {
        let total = settings.history_bytes;
        let segment = (total / 16).clamp(SEGMENT.0, SEGMENT.1);
        Self {
            turns,
            node,
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

    /// The follower of the turns of teams' members; `None` while the workspace ends.
    pub(crate) fn turns(&self) -> Option<Arc<dyn TurnFollower>> {
        self.turns.upgrade().filter(|_| !self.is_closing())
    }

    /// Handles the end of a team's member, killed or not: invalidates its token and notifies the follower of turns.
    pub(crate) fn member_gone(&self, session: SessionId) {
        self.member_tokens.forget(session);
        if let Some(follower) = self.turns() {
            follower.session_gone(session);
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Notes that the daemon ends. No engine is started any more, and a session that ends is
    /// recorded as ended with the daemon.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn history_dir(&self, id: SessionId) -> PathBuf {
        self.dir.join("history").join(id.to_string())
    }

    /// The directory of the events of an agent's turns. It is in the history's, so that it is removed with the
    /// history.
    pub(crate) fn turns_dir(&self, id: SessionId) -> PathBuf {
        self.history_dir(id).join("turns")
    }

    /// The directory of the staged files of a session that moves here.
    pub(crate) fn staging_dir(&self, move_id: u64) -> PathBuf {
        self.dir.join("moves").join(format!("{move_id:016x}"))
    }

    /// Removes a session's private agent files. It blocks.
    pub(crate) fn remove_agent_dir(&self, id: SessionId) -> io::Result<()> {
        remove_all(&self.dir.join("agents").join(id.to_string()))
    }

    pub(crate) const fn retention(&self) -> Retention {
        self.retention
    }
}
