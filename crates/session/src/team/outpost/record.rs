//! The stored records of an outpost, from which a restart rebuilds it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::team::record::Kind;

/// A stored record of an outpost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeatRecord {
    /// A session that works for a team of another member.
    Seat(SeatFacts),
    /// A message whose turn has not begun.
    Message {
        /// The session.
        session: Uuid,
        /// The message.
        message: SeatMessage,
    },
    /// A report that the team's owner has not acknowledged.
    Report {
        /// The session.
        session: Uuid,
        /// The report's number among those of the session, from 1 on.
        number: u64,
        /// The report.
        report: Report,
    },
}

/// The key of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeatKey {
    /// The session.
    pub session: Uuid,
    /// The part of the seat.
    pub part: SeatPart,
}

/// The part of a seat. Its text form is part of the stored format and must never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SeatPart {
    /// The seat itself. Its removal removes the other parts, too.
    Seat,
    /// A message, by its seq.
    Message(u64),
    /// A report, by its number.
    Report(u64),
}

/// A session that works for a team of another member, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatFacts {
    /// The session.
    pub session: Uuid,
    /// The team.
    pub team: Uuid,
    /// The node id of the team's owner.
    pub owner: String,
    /// The newest message that was taken for the session.
    pub(super) taken: u64,
    /// The number of the newest report.
    pub(super) reports: u64,
    /// Whether the session has ended.
    pub(super) is_gone: bool,
}

/// A message to a session of an outpost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatMessage {
    /// Its number in the team.
    pub seq: u64,
    /// The sender.
    pub from: Uuid,
    /// The sender's name.
    pub name: Option<String>,
    /// Whether the sender leads the team.
    pub leads: bool,
    /// The kind of message.
    pub kind: Kind,
    /// The text.
    pub payload: Arc<str>,
}

/// An event of a session of an outpost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Report {
    /// The turn begins whose prompt is this message.
    Begun {
        /// The message.
        seq: u64,
    },
    /// A turn has begun.
    Started {
        /// Its number.
        turn: u64,
    },
    /// A turn has ended.
    Ended {
        /// Its number.
        turn: u64,
        /// Whether it succeeded.
        completed: bool,
        /// The agent's final answer, or the error.
        text: String,
    },
    /// The machine's daemon has started again: a turn that had begun is lost.
    Stopped,
    /// The session has ended.
    Gone,
}

impl SeatRecord {
    /// The key of the record.
    pub fn key(&self) -> SeatKey {
        match self {
            Self::Seat(facts) => SeatKey::seat(facts.session),
            Self::Message { session, message } => SeatKey::message(*session, message.seq),
            Self::Report { session, number, .. } => SeatKey::report(*session, *number),
        }
    }
}

impl SeatKey {
    pub(super) const fn seat(session: Uuid) -> Self {
        Self { session, part: SeatPart::Seat }
    }

    pub(super) const fn message(session: Uuid, seq: u64) -> Self {
        Self { session, part: SeatPart::Message(seq) }
    }

    pub(super) const fn report(session: Uuid, number: u64) -> Self {
        Self { session, part: SeatPart::Report(number) }
    }
}

impl fmt::Display for SeatPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seat => f.write_str("seat"),
            Self::Message(seq) => write!(f, "message/{seq:020}"),
            Self::Report(number) => write!(f, "report/{number:020}"),
        }
    }
}

impl Report {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Ended { text, .. } => text.len(),
            _ => 0,
        }
    }

    /// Whether the report may be dropped when too many wait. Without the reports of other kinds, the
    /// owner's view of the session would stay wrong.
    pub(super) const fn is_of_turn(&self) -> bool {
        matches!(self, Self::Started { .. } | Self::Ended { .. })
    }
}
