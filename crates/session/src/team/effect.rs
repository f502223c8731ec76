//! The effects of a call.

use std::{collections::BTreeSet, sync::Arc};

use uuid::Uuid;

use super::{
    error::TeamError,
    outpost::{SeatKey, SeatRecord},
    record::{Key, Kind, Message, Record},
    wait::{Answer, Caller},
};

/// An effect of a call. The effects to keep come first. They must be durable, all or none of them,
/// before any other effect is carried out and before the call is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Store this change.
    Keep(Change),
    /// Show a message to the clients that are attached to its recipient's session. This effect
    /// comes once for each message and recipient.
    Show(Delivery),
    /// Deliver a message to its recipient; to an agent, as its next prompt. Each recipient has one
    /// such message at a time, in order. Call [`super::Teams::delivered`] when the message has
    /// reached the recipient: for an agent that is when its turn with the message begins, and
    /// before that turn is reported as begun. Call [`super::Teams::not_taken`] if the recipient has
    /// no room for it.
    Deliver(Delivery),
    /// A team worker has a result. This effect comes once for each result.
    WorkerResult {
        /// The team.
        team: Uuid,
        /// The team worker.
        worker: Uuid,
        /// Whether the work succeeded.
        success: bool,
        /// The text of the result.
        result: Arc<str>,
    },
    /// No team worker of this team has anything left to do.
    Completed(Uuid),
    /// The answer to a caller's wait, which ends the wait for that caller.
    WaitAnswered {
        /// The caller.
        caller: Caller,
        /// The answer.
        answer: Result<Answer, TeamError>,
    },
    /// A team's members or status have changed.
    Updated(Uuid),
    /// A team was deleted.
    Deleted(Uuid),
    /// End these sessions.
    KillSessions(Vec<Uuid>),
}

/// A change of the stored records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Write this under the record's key, replacing the previous record.
    Put(Record),
    /// Remove the record with this key; for the key of a team, all its records.
    Remove(Key),
    /// Write this record of the outpost under its key, replacing the previous one.
    PutSeat(SeatRecord),
    /// Remove the record of the outpost with this key; for the key of a seat, all its records.
    RemoveSeat(SeatKey),
}

/// A message on its way to one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The team.
    pub team: Uuid,
    /// The message's number in the team.
    pub seq: u64,
    /// The sender.
    pub from: Uuid,
    /// The recipient.
    pub to: Uuid,
    /// The kind of message.
    pub kind: Kind,
    /// The text.
    pub payload: Arc<str>,
}

/// Collects the effects of one call.
#[derive(Debug, Default)]
pub(super) struct Out {
    /// The keys of the records that may differ from the stored ones.
    pub(super) changed: BTreeSet<Key>,
    pub(super) effects: Vec<Effect>,
}

impl Delivery {
    pub(super) fn new(team: Uuid, to: Uuid, message: &Message) -> Self {
        let Message { seq, from, kind, ref payload, .. } = *message;
        Self { team, seq, from, to, kind, payload: Arc::clone(payload) }
    }
}

impl Out {
    pub(super) fn change(&mut self, key: Key) {
        self.changed.insert(key);
    }

    pub(super) fn say(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
