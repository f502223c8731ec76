//! The effects of a call.

use std::{collections::BTreeSet, sync::Arc};

use uuid::Uuid;

use super::{
    error::TeamError,
    record::{Key, Kind, Message, Record},
    wait::{Answer, Caller},
};

/// What is to be done. Those to keep come first, and are durable, all or none of them, before
/// anything else is done and before anything is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Keep this.
    Keep(Change),
    /// Show a message to the clients that are attached to its addressee. It is said once.
    Show(Delivery),
    /// Hand a message to its addressee: to an agent as its next prompt. Each addressee has one at
    /// a time, in order. Say [`super::Teams::delivered`] when it has reached it, that is when the
    /// agent's turn with it begins (and before that turn is said to begin), or
    /// [`super::Teams::not_taken`] when there is no room for it.
    Deliver(Delivery),
    /// A team worker's result is there. It is said once for a turn.
    WorkerResult {
        /// Its team.
        team: Uuid,
        /// This worker.
        worker: Uuid,
        /// Whether it went well.
        success: bool,
        /// Its result.
        result: Arc<str>,
    },
    /// No worker of this team has anything left to do.
    Completed(Uuid),
    /// The answer to a wait, which ends it.
    WaitAnswered {
        /// This one.
        caller: Caller,
        /// The answer.
        answer: Result<Answer, TeamError>,
    },
    /// A team has other members, or another status.
    Updated(Uuid),
    /// A team was removed.
    Deleted(Uuid),
    /// End these sessions.
    KillSessions(Vec<Uuid>),
}

/// A change of the stored records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Write this under its key, over what was there.
    Put(Record),
    /// Remove what is under this key; of a team, everything.
    Remove(Key),
}

/// A message on its way to one addressee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// In this team.
    pub team: Uuid,
    /// Its place in the team.
    pub seq: u64,
    /// The sender.
    pub from: Uuid,
    /// The recipient.
    pub to: Uuid,
    /// The kind of message.
    pub kind: Kind,
    /// The message.
    pub payload: Arc<str>,
}

/// The effects of one call, collected.
#[derive(Debug, Default)]
pub(super) struct Out {
    /// The records that may differ from the stored ones.
    pub(super) changed: BTreeSet<Key>,
    pub(super) said: Vec<Effect>,
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
        self.said.push(effect);
    }
}
