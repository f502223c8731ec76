//! A session in a team: the messages that it was sent, and those that it has answered.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A session in a team, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    pub(super) session: Uuid,
    pub(super) joined_at: u64,
    pub(super) gone_at: Option<u64>,
    /// The newest message that has reached the session. All earlier ones have reached it, too.
    pub(super) reached: u64,
    /// The newest message that a result of the session answers. For a leader: the newest message
    /// that it has seen in a turn that is over.
    pub(super) answered: u64,
    /// The session has read all messages before this one.
    pub(super) read_below: u64,
    pub(super) turn: Option<Turn>,
    /// The newest turn that has begun.
    pub(super) last_turn: u64,
    /// The number of the session's results so far.
    pub(super) results: u64,
    /// Whether the leader's agent itself gave the session work, and must hear of each result.
    #[serde(default)]
    pub(super) for_leader: bool,
    /// The newest result that the leader has heard of.
    #[serde(default)]
    pub(super) heard: u64,
    /// The node id of the machine that runs the session; `None` if that is the team's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    /// The number of the newest report that was taken from that machine about the session.
    #[serde(default)]
    pub(super) reports: u64,
}

/// A turn that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) number: u64,
    /// The newest message that the turn's result answers.
    pub(super) answers: u64,
    /// Whether the turn already has its result.
    pub(super) reported: bool,
}

/// A member, and the state that follows from the other records.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) record: MemberRecord,
    /// The messages that have not reached the member.
    pub(super) waiting: BTreeSet<u64>,
    /// The message that is being delivered to the member.
    pub(super) offered: Option<u64>,
    /// Whether the member had no room for the last message.
    pub(super) full: bool,
}

impl MemberRecord {
    pub(super) fn new(session: Uuid, joined_at: u64) -> Self {
        Self {
            session,
            joined_at,
            gone_at: None,
            reached: 0,
            answered: 0,
            read_below: 0,
            turn: None,
            last_turn: 0,
            results: 0,
            for_leader: false,
            heard: 0,
            node: None,
            reports: 0,
        }
    }

    pub(super) fn start(&mut self, number: u64) {
        self.last_turn = number;
        self.turn = Some(Turn { number, answers: self.reached, reported: false });
    }

    /// Whether a message has reached the session or a turn has begun, and the result is still
    /// missing.
    pub(super) fn owes(&self) -> bool {
        self.turn.is_some_and(|turn| !turn.reported) || self.reached > self.answered
    }
}

impl Member {
    pub(super) fn new(record: MemberRecord) -> Self {
        Self { record, waiting: BTreeSet::new(), offered: None, full: false }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.record.gone_at.is_some()
    }

    /// Whether a result is still to come.
    pub(super) fn is_pending(&self) -> bool {
        !self.is_gone() && (self.record.owes() || !self.waiting.is_empty())
    }

    /// The newest message that the member was sent, whether or not it has answered it.
    pub(super) fn newest(&self) -> u64 {
        self.waiting.last().copied().unwrap_or(0).max(self.record.reached)
    }

    /// Whether the member no longer needs this message: the member has ended, or it has received
    /// the message and the message is not being delivered to it now. A leader with turns may be
    /// delivered a message again until its turn with the message is over, so it needs the message
    /// until then.
    pub(super) fn is_through_with(&self, seq: u64, leads: bool) -> bool {
        let settles = leads && self.record.last_turn > 0;
        let had = if settles { self.record.answered } else { self.record.reached };
        let has_it = seq <= had || seq < self.record.read_below;
        self.is_gone() || (has_it && self.offered != Some(seq))
    }

    /// Whether this member satisfies a wait that began when it had given `after` results, and when
    /// `until` was the newest message sent to it.
    pub(super) fn satisfies(&self, until: u64, after: u64) -> bool {
        if self.is_gone() {
            return true;
        }
        let answered = self.record.answered >= until.min(self.record.reached)
            && self.waiting.first().is_none_or(|first| *first > until);
        let has_new = self.record.results > after && answered;
        has_new || (self.record.results > 0 && !self.is_pending())
    }
}
