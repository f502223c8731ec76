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

/// A link to another member, and what is under way over it. In this type's fields, *the member* is
/// the linked one.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) node: NodeId,
    pub(crate) incarnation: Incarnation,
    /// The incarnations that the member has links to.
    pub(crate) neighbours: BTreeSet<Incarnation>,
    /// The content of the member's last digest.
    pub(crate) shown: Option<Shown>,
    /// The highest counter of each incarnation that the member has noted, as hints and deltas say.
    pub(crate) hinted: BTreeMap<Incarnation, u64>,
    /// When the next digest leaves.
    pub(crate) digest_at: Instant,
    /// When the next digest leaves that also says what is known of other members.
    pub(crate) full_at: Instant,
    /// Writes of other members that the member may not have noted, and when to send a hint about
    /// them.
    pub(crate) news: BTreeMap<Incarnation, u64>,
    pub(crate) hint_at: Option<Instant>,
    /// When to pull from the member, if it then still has writes that are not noted here.
    pub(crate) pull_at: Option<Instant>,
    /// No pull begins before this time, since the last one met a bound.
    pub(crate) rest_until: Option<Instant>,
    /// The pull that is under way from the member.
    pub(crate) ask: Option<Ask>,
    /// Whether the member's list of retired incarnations may differ from the one that its last
    /// digest stood for.
    pub(crate) is_list_stale: bool,
    /// The answer to the pull that the member makes.
    pub(crate) answer: Option<Answer>,
    /// The number of the member's last pull.
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
    /// Whether an entry was not taken in because of a bound.
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
