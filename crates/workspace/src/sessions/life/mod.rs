//! The life of a session: its facts, its status, its announcements and its end.
//!
//! - [`Life`]: the facts, and the state that is not stored; [`Activity`]: whether an agent works
//! - [`facts`]: the stored facts; [`keeper`]: stores them
//! - [`port`]: the port of a development server

pub(crate) mod facts;
pub(crate) mod keeper;
pub(crate) mod port;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use protocol::workspace::{SessionInfo, SessionMode, SessionStatus};
use session::terminal::size::Size;

use self::{facts::Facts, port::PortSearch};
use crate::{refusal::Refusal, settings::NodeSlot};

/// The end of a session that ended with the daemon, in words.
pub(crate) const WITH_THE_DAEMON: &str = "it ended with the daemon";
/// The same for a session that would have outlived the daemon, if the next daemon had the same version of the
/// messages.
pub(crate) const OTHER_VERSION: &str =
    "it ended with the daemon: the new version of Warren cannot continue what this one began";

/// The shortest time between two announcements of a session's changes.
const BETWEEN_ANNOUNCEMENTS: Duration = Duration::from_millis(100);

/// The facts of a session, and the part of its state that is not stored. It has no lock of its own:
/// the session's covers it.
pub(crate) struct Life {
    pub(crate) facts: Facts,
    /// The node id of this machine.
    node: NodeSlot,
    pub(crate) activity: Activity,
    pub(crate) port: PortSearch,
    /// Whether a change has yet to be announced.
    is_changed: bool,
    /// The time of the last announcement.
    announced: Option<Instant>,
    /// The time when a viewer last left, or when the session ended if that was later.
    pub(crate) quiet_since: Instant,
    /// Whether the session was removed from the list of sessions.
    pub(crate) is_removed: bool,
    /// Whether the session moves to another machine just now, so that nothing may change it.
    pub(crate) is_leaving: bool,
    /// Whether the session's stored data is removed, so that nothing of it may be stored any more.
    pub(crate) is_gone: bool,
}

/// Whether an agent is in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Working,
    Idle,
}

/// The facts about viewers, output and questions that the clients' form of a session has.
pub(crate) struct Seen {
    pub(crate) attached_clients: usize,
    /// Whether there were viewers, and all of them have left.
    pub(crate) viewers_have_left: bool,
    /// The number of the newest output, if known.
    pub(crate) last_seq: Option<u64>,
    /// How many questions of the agent are open.
    pub(crate) asks: usize,
}

impl Life {
    pub(crate) fn new(facts: Facts, now: Instant, node: NodeSlot) -> Self {
        Self {
            port: PortSearch::new(&facts, now),
            facts,
            node,
            activity: Activity::Idle,
            is_changed: false,
            announced: None,
            quiet_since: now,
            is_removed: false,
            is_leaving: false,
            is_gone: false,
        }
    }

    /// The session in the clients' form.
    pub(crate) fn info(&self, seen: &Seen) -> SessionInfo {
        let facts = &self.facts;
        SessionInfo {
            id: facts.id,
            name: facts.name.clone(),
            mode: facts.mode,
            status: self.status(seen.viewers_have_left),
            working_dir: facts.working_dir.clone(),
            model: facts.model.clone(),
            created_at: facts.created_at,
            last_active: facts.last_active,
            attached_clients: count(seen.attached_clients),
            adopted_pid: facts.adopted.map(|(pid, _)| pid),
            project_id: facts.project_id,
            node_id: self.node.get(),
            kind: facts.kind.clone(),
            provider: facts.provider.clone(),
            hidden: facts.hidden,
            team_id: facts.team_id,
            is_team_leader: facts.is_team_leader,
            reachable: true,
            dev_server_port: self.port.found(),
            exit_code: facts.exit_code,
            last_seq: seen.last_seq,
            asks: count(seen.asks),
            tags: facts.tags.clone(),
        }
    }

    pub(crate) fn status(&self, viewers_have_left: bool) -> SessionStatus {
        match (self.facts.mode, self.activity) {
            _ if self.facts.ended.is_some() => SessionStatus::Exited,
            (SessionMode::Pty, _) if viewers_have_left => SessionStatus::Detached,
            (SessionMode::Sdk, Activity::Idle) => SessionStatus::Idle,
            _ => SessionStatus::Running,
        }
    }

    /// Whether the session is a terminal whose program has ended.
    pub(crate) fn is_ended_terminal(&self) -> bool {
        self.facts.mode == SessionMode::Pty && self.facts.ended.is_some()
    }

    /// Notes that the session is active now.
    pub(crate) fn touch(&mut self) {
        self.facts.last_active = Timestamp::now();
    }

    /// The stored form of the facts, with the size; `None` for a session that is gone.
    pub(crate) fn stored(&self, size: Size) -> Option<String> {
        if self.is_gone {
            return None;
        }
        facts::write(&self.facts, (size.cols(), size.rows()))
    }
}

/// Announcements to all clients.
impl Life {
    /// Notes a change that has to be announced.
    pub(crate) const fn note_change(&mut self) {
        self.is_changed = true;
    }

    /// When the next announcement is due; `None` if there is nothing to announce.
    pub(crate) fn announce_at(&self) -> Option<Instant> {
        let next = self.announced.map(|announced| announced + BETWEEN_ANNOUNCEMENTS);
        self.is_changed.then(|| next.unwrap_or(self.quiet_since))
    }

    /// Takes the announcement that is due now. Returns whether there is one.
    pub(crate) fn take_announcement(&mut self, now: Instant) -> bool {
        let is_due = self.announce_at().is_some_and(|at| at <= now) && !self.is_gone;
        if is_due {
            (self.is_changed, self.announced) = (false, Some(now));
        }
        is_due
    }
}

/// The end.
impl Life {
    /// Whether the session may end now. An agent does not end with the daemon: it goes on when the
    /// next daemon starts.
    pub(crate) fn may_end(&self, is_closing: bool) -> bool {
        let stays = is_closing && self.facts.mode == SessionMode::Sdk;
        !stays && self.facts.ended.is_none() && !self.is_gone
    }

    /// Notes how the session has ended. `is_closing`: the daemon ends, too.
    pub(crate) fn end(
        &mut self,
        how: String,
        exit_code: Option<i32>,
        is_closing: bool,
        now: Instant,
    ) {
        let how = if is_closing { WITH_THE_DAEMON.to_owned() } else { how };
        (self.facts.ended, self.quiet_since) = (Some(how), now);
        // The daemon ended the program, so the exit code is no result of the program.
        self.facts.exit_code = exit_code.filter(|_| !is_closing);
        self.port.end();
        self.touch();
    }

    /// Notes that a terminal of an earlier daemon has ended, in these words. `written` is the time of its newest
    /// output. Returns false if the end was noted before.
    pub(crate) fn end_with_earlier_daemon(
        &mut self,
        how: &str,
        written: Option<Timestamp>,
    ) -> bool {
        self.port.end();
        let is_new = self.facts.ended.is_none();
        if is_new {
            self.facts.ended = Some(how.to_owned());
            self.facts.last_active = written.unwrap_or(self.facts.last_active);
        }
        is_new
    }

    /// Whether the session may be changed or ended by a client now.
    pub(crate) fn may_change(&self) -> Result<(), Refusal> {
        match self.is_leaving {
            false => Ok(()),
            true => Err(Refusal::invalid(
                "the session moves to another machine just now: try again in a moment",
            )),
        }
    }

    /// Begins the removal of the session by a client: it counts as removed from here on. Only one caller may
    /// remove it.
    pub(crate) fn begin_removal(&mut self) -> Result<(), Refusal> {
        self.may_change()?;
        match std::mem::replace(&mut self.is_removed, true) {
            false => Ok(()),
            true => Err(Refusal::UnknownSession(self.facts.id)),
        }
    }

    /// Prepares a restored session for another start of its engine. Returns whether the engine may be
    /// started. An agent may always be started: what it lacked at the last start may be here now.
    pub(crate) fn resume(&mut self) -> bool {
        if self.facts.mode == SessionMode::Sdk {
            self.facts.ended = None;
        }
        self.facts.ended.is_none()
    }
}

/// A number of things, as clients get it.
fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
