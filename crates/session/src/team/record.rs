//! The stored records of teams, from which a restart rebuilds them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::member::MemberRecord;

/// A stored record, small enough to be written whole whenever it changes. Times are in milliseconds
/// since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A team.
    Team(TeamRecord),
    /// A session in a team; the leader is a member, too.
    Member {
        /// The team.
        team: Uuid,
        /// The member.
        member: MemberRecord,
    },
    /// A message, which never changes.
    Message {
        /// The team.
        team: Uuid,
        /// The message.
        message: Message,
    },
    /// A result, which never changes.
    Result {
        /// The team.
        team: Uuid,
        /// The result.
        result: TeamResult,
    },
    /// A wait that can be resumed.
    Wait(WaitRecord),
}

/// The key of a record. The removal of a team's key removes all records of the team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The team.
    pub team: Uuid,
    /// The part of the team.
    pub part: Part,
}

/// The part of a team. Its text form is part of the stored format and must never change.
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
    /// The seq of the next message.
    pub(super) next_seq: u64,
}

/// A message of one member to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The message's number in the team, from 1 on.
    pub seq: u64,
    /// The sender.
    pub from: Uuid,
    /// The recipients.
    pub to: Vec<Uuid>,
    /// The kind of message.
    pub kind: Kind,
    /// The text.
    pub payload: Arc<str>,
    /// The time of its arrival in the inbox, in milliseconds since 1970.
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
    /// The result's number among this team worker's results, from 1 on.
    pub number: u64,
    /// The turn; `None` if there was none.
    pub turn: Option<u64>,
    /// Whether the work succeeded.
    pub success: bool,
    /// The text.
    pub text: Arc<str>,
    /// The time of the result, in milliseconds since 1970.
    pub at: u64,
}

/// A wait that can be resumed, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRecord {
    pub(super) id: Uuid,
    pub(super) team: Uuid,
    pub(super) made_at: u64,
    pub(super) slots: BTreeMap<Uuid, Slot>,
    /// Whether a caller has received the complete answer.
    pub(super) collected: bool,
}

/// The state of a wait for one of its team workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Slot {
    /// The result is still awaited.
    Open {
        /// The newest message that the team worker had been sent when the wait began.
        until: u64,
        /// The number of the team worker's results at that time.
        after: u64,
    },
    /// The result with this number counts; 0 if the team worker ended without any result.
    Done(u64),
}

impl Record {
    /// The key of the record.
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
