//! The stored records of teams, for a restart.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::member::Member;

/// One thing that is kept, small enough to be written whole whenever it changes. Times are in
/// milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A team.
    Team(TeamRecord),
    /// A session in a team, the leader's too.
    Member {
        /// This team.
        team: Uuid,
        /// The member.
        member: Member,
    },
    /// A message, which never changes.
    Message {
        /// In this team.
        team: Uuid,
        /// The message.
        message: Message,
    },
    /// A result, which never changes.
    Result {
        /// In this team.
        team: Uuid,
        /// The result.
        result: TeamResult,
    },
    /// A wait that can be resumed.
    Wait(WaitRecord),
}

/// The key of a record. The key of a removed team stands for all its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Which team.
    pub team: Uuid,
    /// The part of it.
    pub part: Part,
}

/// The part of a team; its text never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The team itself.
    Team,
    /// A member, by its session.
    Member(Uuid),
    /// A message, by its seq.
    Message(u64),
    /// A team worker's result, by its number.
    Result(Uuid, u64),
    /// A wait, by its id.
    Wait(Uuid),
}

/// A team, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamRecord {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) leader: Uuid,
    pub(super) project: Option<Uuid>,
    pub(super) created_at: u64,
    pub(super) last_active: u64,
    /// The number of the next message.
    pub(super) next_seq: u64,
}

/// A message of one member to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its place in the team, from 1 on.
    pub seq: u64,
    /// The sender.
    pub from: Uuid,
    /// The recipients.
    pub to: Vec<Uuid>,
    /// The kind of message.
    pub kind: Kind,
    /// The message.
    pub payload: Arc<str>,
    /// When it came into the inbox, in milliseconds since 1970.
    pub at: u64,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The task of a team worker: its prompt, word for word.
    Assignment,
    /// A message of one member to another.
    Message,
}

/// The result of a team worker's turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamResult {
    /// The team worker.
    pub worker: Uuid,
    /// Its place among the results of this worker, from 1 on.
    pub number: u64,
    /// The turn, where there was one.
    pub turn: Option<u64>,
    /// Whether it went well.
    pub success: bool,
    /// The result.
    pub text: Arc<str>,
    /// When it came, in milliseconds since 1970.
    pub at: u64,
}

/// A wait that can be resumed, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRecord {
    pub(super) id: Uuid,
    pub(super) team: Uuid,
    pub(super) made_at: u64,
    pub(super) slots: BTreeMap<Uuid, Slot>,
    /// Whether somebody has been given the whole answer.
    pub(super) collected: bool,
}

/// How a wait stands with one of its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Slot {
    /// It is still awaited.
    Open {
        /// The newest message that it had been sent when the wait began.
        until: u64,
        /// How many results it had given then.
        after: u64,
    },
    /// This result of it counts; 0 when it ended without ever giving one.
    Done(u64),
}

impl Record {
    /// Its key.
    pub fn key(&self) -> Key {
        match self {
            Self::Team(team) => Key { team: team.id, part: Part::Team },
            Self::Member { team, member } => Key::member(*team, member.session),
            Self::Message { team, message } => Key::message(*team, message.seq),
            Self::Result { team, result } => Key::result(*team, result.worker, result.number),
            Self::Wait(wait) => Key { team: wait.team, part: Part::Wait(wait.id) },
        }
    }
}

impl Key {
    pub(super) const fn team(team: Uuid) -> Self {
        Self { team, part: Part::Team }
    }

    pub(super) const fn member(team: Uuid, session: Uuid) -> Self {
        Self { team, part: Part::Member(session) }
    }

    pub(super) const fn message(team: Uuid, seq: u64) -> Self {
        Self { team, part: Part::Message(seq) }
    }

    pub(super) const fn result(team: Uuid, worker: Uuid, number: u64) -> Self {
        Self { team, part: Part::Result(worker, number) }
    }

    pub(super) const fn wait(team: Uuid, id: Uuid) -> Self {
        Self { team, part: Part::Wait(id) }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Team => f.write_str("team"),
            Self::Member(session) => write!(f, "member/{session}"),
            Self::Message(seq) => write!(f, "message/{seq:020}"),
            Self::Result(worker, number) => write!(f, "result/{worker}/{number:020}"),
            Self::Wait(id) => write!(f, "wait/{id}"),
        }
    }
}
