//! One linked member.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use crate::{
    answer::Answer,
    context::Context,
    dot::Incarnation,
    entry::{Key, NodeId},
};

/// A link to another member, and what is under way over it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) node: NodeId,
    pub(crate) incarnation: Incarnation,
    /// The incarnations that this member has links to.
    pub(crate) neighbours: BTreeSet<Incarnation>,
    /// The digest that this member showed last.
    pub(crate) shown: Option<Shown>,
    /// Writes that this member has, as a hint or a delta says: the highest of each incarnation.
    pub(crate) hinted: BTreeMap<Incarnation, u64>,
    /// When the next digest leaves.
    pub(crate) digest_at: Instant,
    /// When the next digest with the contexts of others leaves.
    pub(crate) full_at: Instant,
    /// Writes of others that this member may not have, and when they are hinted at.
    pub(crate) news: BTreeMap<Incarnation, u64>,
    pub(crate) hint_at: Option<Instant>,
    /// When to pull from this member, if it still has something that is lacking here then.
    pub(crate) pull_at: Option<Instant>,
    /// Before this no pull begins: the last one met a bound.
    pub(crate) rest_until: Option<Instant>,
    /// The pull from this member.
    pub(crate) ask: Option<Ask>,
    /// Whether its list of retired incarnations is not the one that it showed.
    pub(crate) is_list_stale: bool,
    /// This member's pull from here.
    pub(crate) answer: Option<Answer>,
    /// The number of this member's last pull.
    pub(crate) last_pull: u64,
}

/// The content of a member's last digest.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) context: Context,
    pub(crate) retired: u64,
}

/// A pull from a linked member.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    /// The number of the next batch.
    pub(crate) next: u32,
    /// When the last batch came.
    pub(crate) heard: Instant,
    /// The keys that the member listed, and those of the entries that it sent.
    pub(crate) keys: BTreeSet<Key>,
    /// Whether a bound kept an entry out.
    pub(crate) refused: bool,
    /// The hash of the retired incarnations when the pull began.
    pub(crate) retired_hash: u64,
}

impl Link {
    pub(crate) fn new(node: NodeId, incarnation: Incarnation, now: Instant) -> Self {
        Self {
            node,
            incarnation,
            neighbours: BTreeSet::new(),
            shown: None,
            hinted: BTreeMap::new(),
            digest_at: now,
            full_at: now,
            news: BTreeMap::new(),
            hint_at: None,
            pull_at: None,
            rest_until: None,
            ask: None,
            is_list_stale: false,
            answer: None,
            last_pull: 0,
        }
    }

    /// Asks for a pull no later than `at`.
    pub(crate) fn want_pull(&mut self, at: Instant) {
        self.pull_at = Some(self.pull_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// When a wanted pull may begin.
    pub(crate) fn pull_due(&self) -> Option<Instant> {
        let at = self.pull_at.filter(|_| self.ask.is_none())?;
        Some(self.rest_until.map_or(at, |rest| rest.max(at)))
    }
}
