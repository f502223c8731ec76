//! A session in a team: what it was sent, what it has answered.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A session in a team, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub(super) session: Uuid,
    pub(super) joined_at: u64,
    pub(super) gone_at: Option<u64>,
    /// The newest message that has reached it; all before it have, too.
    pub(super) reached: u64,
    /// The newest message that a result of it answers; of a leader, that was said to it in a turn that
    /// is over.
    pub(super) answered: u64,
    /// It has read all messages before this one.
    pub(super) read_below: u64,
    pub(super) turn: Option<Turn>,
    /// The newest turn that has begun.
    pub(super) last_turn: u64,
    /// How many results it has given.
    pub(super) results: u64,
    /// Whether its leader's agent itself gave it work, and is to hear of each result.
    #[serde(default)]
    pub(super) for_leader: bool,
    /// The newest result that its leader has heard of.
    #[serde(default)]
    pub(super) heard: u64,
}

/// A turn that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) number: u64,
    /// The newest message that its result answers.
    pub(super) answers: u64,
    /// Whether its result is there.
    pub(super) reported: bool,
}

/// A member, and what follows from the rest of what is kept.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) kept: Member,
    /// The messages that have not reached it.
    pub(super) waiting: BTreeSet<u64>,
    /// The one that it is being handed.
    pub(super) offered: Option<u64>,
    /// It had no room for the last one.
    pub(super) full: bool,
}

impl Member {
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
        }
    }

    pub(super) fn start(&mut self, number: u64) {
        self.last_turn = number;
        self.turn = Some(Turn { number, answers: self.reached, reported: false });
    }

    /// Whether it has been handed something, or began something, and no result is there.
    pub(super) fn owes(&self) -> bool {
        self.turn.is_some_and(|turn| !turn.reported) || self.reached > self.answered
    }
}

impl Seat {
    pub(super) fn new(kept: Member) -> Self {
        Self { kept, waiting: BTreeSet::new(), offered: None, full: false }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.kept.gone_at.is_some()
    }

    /// Whether a result of it is still to come.
    pub(super) fn is_pending(&self) -> bool {
        !self.is_gone() && (self.kept.owes() || !self.waiting.is_empty())
    }

    /// The newest message that it was sent and has not answered, or one that it has.
    pub(super) fn newest(&self) -> u64 {
        self.waiting.last().copied().unwrap_or(0).max(self.kept.reached)
    }

    /// Whether it has nothing to do with a message any more: it is not there to read it, or it has
    /// it, and does not have it in its hands. A leader that has turns could be handed it again until
    /// its turn is over.
    pub(super) fn is_through_with(&self, seq: u64, leads: bool) -> bool {
        let settles = leads && self.kept.last_turn > 0;
        let had = if settles { self.kept.answered } else { self.kept.reached };
        let has_it = seq <= had || seq < self.kept.read_below;
        self.is_gone() || (has_it && self.offered != Some(seq))
    }

    /// Whether its newest result is what a wait is for that began when it had given `after`
    /// results and had been sent messages until `until`.
    pub(super) fn satisfies(&self, until: u64, after: u64) -> bool {
        if self.is_gone() {
            return true;
        }
        let answered = self.kept.answered >= until.min(self.kept.reached)
            && self.waiting.first().is_none_or(|first| *first > until);
        let has_new = self.kept.results > after && answered;
        has_new || (self.kept.results > 0 && !self.is_pending())
    }
}
