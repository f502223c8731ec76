//! The state of a session whose process outlives its driver, so that the next driver goes on in the middle
//! of a turn. Times are stored as spans: the time between two drivers does not count.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Config, Stage, Turn, Turns,
    permission::{OpenPermission, Pending},
    process::{Closing, Process},
    tail::Tail,
};
use crate::agent::{dialect::contract::Dialect, usage::Usage};

#[derive(Serialize, Deserialize)]
struct SavedState {
    dialect: Value,
    conversation: Option<String>,
    number: u64,
    turn: Option<SavedTurn>,
    process: SavedProcess,
    /// For how long the process has been idle.
    idle: Option<Duration>,
    permissions: Vec<SavedPermission>,
    requests: u64,
    tail: Tail,
    used: Option<Usage>,
}

/// A [`Turn`], with spans for its instants, which mean nothing after a restart.
#[derive(Serialize, Deserialize)]
struct SavedTurn {
    prompt: String,
    stage: Stage,
    /// The time since the agent last made progress.
    alive: Duration,
    /// The time left for the turn to end after an interrupt.
    interrupted: Option<Duration>,
    /// The time left for the process to end after its answer.
    leaving: Option<Duration>,
    is_anew: bool,
    has_noted: bool,
}

#[derive(Serialize, Deserialize)]
enum SavedProcess {
    None,
    Live,
    Leaving(Duration),
    Eof(Duration),
    Term(Duration),
    Killed,
}

/// An [`OpenPermission`], with a span for its instant.
#[derive(Serialize, Deserialize)]
struct SavedPermission {
    pending: Pending,
    key: String,
    bytes: usize,
    expires: Duration,
}

impl Turns {
    /// The state of the session, for [`Turns::restored`]. All outputs must be carried out. The prompts
    /// that wait are not part of it.
    pub fn saved_state(&self, now: Instant) -> Value {
        let until = |at: Instant| at.saturating_duration_since(now);
        let permissions = self.permissions.iter().map(|open| SavedPermission {
            pending: open.pending.clone(),
            key: open.key.clone(),
            bytes: open.bytes,
            expires: until(open.expires),
        });
        let saved = SavedState {
            dialect: self.dialect.state(),
            conversation: self.conversation.clone(),
            number: self.number,
            turn: self.turn.as_ref().map(|turn| SavedTurn::of(turn, now)),
            process: SavedProcess::of(self.process, now),
            idle: self.idle_since.map(|since| now.saturating_duration_since(since)),
            permissions: permissions.collect(),
            requests: self.requests,
            tail: self.tail.clone(),
            used: self.used,
        };
        // All of it has a form in JSON, so there is no error.
        serde_json::to_value(saved).unwrap_or_default()
    }

    /// A session whose process goes on, with the prompts that wait; `None` if the state is that of another
    /// dialect, or of another turn than that of the configuration.
    pub fn restored(
        config: Config,
        mut dialect: Box<dyn Dialect>,
        waiting: Vec<String>,
        saved: Value,
        now: Instant,
    ) -> Option<Self> {
        let saved: SavedState = serde_json::from_value(saved).ok()?;
        // The number of the last turn (in `config`) and the state are stored one after the other. If the daemon was
        // killed in between, they differ.
        if saved.number != config.turn || !dialect.restore(saved.dialect) {
            return None;
        }
        let permissions = saved.permissions.into_iter().map(|open| OpenPermission {
            pending: open.pending,
            key: open.key,
            bytes: open.bytes,
            expires: now + open.expires,
        });
        Some(Self {
            turn: saved.turn.map(|turn| turn.restored(saved.number, now)),
            process: saved.process.restored(now),
            // After a start of the machine, its clock may have begun less than this time ago.
            idle_since: saved.idle.map(|idle| now.checked_sub(idle).unwrap_or(now)),
            permissions: permissions.collect(),
            requests: saved.requests,
            tail: saved.tail,
            used: saved.used,
            queue: VecDeque::from(waiting),
            ..Self::new(config, dialect, saved.conversation)
        })
    }
}

impl SavedTurn {
    fn of(turn: &Turn, now: Instant) -> Self {
        let until = |at: Instant| at.saturating_duration_since(now);
        Self {
            prompt: turn.prompt.clone(),
            stage: turn.stage,
            alive: now.saturating_duration_since(turn.last_progress),
            interrupted: turn.interrupt_deadline.map(until),
            leaving: turn.exit_deadline.map(until),
            is_anew: turn.is_anew,
            has_noted: turn.has_noted,
        }
    }

    fn restored(self, number: u64, now: Instant) -> Turn {
        Turn {
            number,
            prompt: self.prompt,
            stage: self.stage,
            last_progress: now.checked_sub(self.alive).unwrap_or(now),
            interrupt_deadline: self.interrupted.map(|span| now + span),
            exit_deadline: self.leaving.map(|span| now + span),
            is_anew: self.is_anew,
            has_noted: self.has_noted,
        }
    }
}

impl SavedProcess {
    fn of(process: Process, now: Instant) -> Self {
        let until = |at: Instant| at.saturating_duration_since(now);
        match process {
            Process::None => Self::None,
            Process::Live => Self::Live,
            Process::Closing(Closing::Leaving(at)) => Self::Leaving(until(at)),
            Process::Closing(Closing::Eof(at)) => Self::Eof(until(at)),
            Process::Closing(Closing::Term(at)) => Self::Term(until(at)),
            Process::Closing(Closing::Killed) => Self::Killed,
        }
    }

    fn restored(self, now: Instant) -> Process {
        Process::Closing(match self {
            Self::None => return Process::None,
            Self::Live => return Process::Live,
            Self::Leaving(span) => Closing::Leaving(now + span),
            Self::Eof(span) => Closing::Eof(now + span),
            Self::Term(span) => Closing::Term(now + span),
            Self::Killed => Closing::Killed,
        })
    }
}
