//! Old incarnations, taken out of contexts.
//!
//! Each start of a member adds an incarnation to every context. One that is unlikely to write again
//! is retired: it is put on a list, of which digests carry only a hash. Nothing is lost if it
//! writes again: the list keeps which of its writes were noted, and another write takes it off the
//! list. So the rules here only decide when a context may be written shorter.

use crate::{context::Seen, dot::Incarnation, entry::NodeId, knowledge::Record, replica::Replica};

/// How long no new write of an incarnation may have come before it is retired.
const QUIET_S: i64 = 7 * 24 * 3600;

/// For how long a member that was heard of through others counts as running.
const FRESH_S: i64 = 600;

impl Replica {
    /// Retires the incarnations that this member may retire by the rules here. It does not retire
    /// one because other members did, except at the end of a pull, which brings their list with its
    /// writes.
    pub(crate) fn retire_quiet(&mut self) {
        self.forget_claims();
        let quiet = self.knowledge.iter().filter(|(_, record)| !record.retired);
        let quiet = quiet.filter(|(incarnation, record)| self.is_over(*incarnation, record));
        let quiet: Vec<Incarnation> = quiet.map(|(incarnation, _)| incarnation).collect();
        for incarnation in quiet {
            if self.knowledge.retired_count() < self.config.limits.retired {
                self.retire(incarnation);
            }
        }
    }

    /// Drops the claims of members that were deleted.
    fn forget_claims(&mut self) {
        let members: std::collections::BTreeSet<NodeId> =
            self.members().map(NodeId::from).collect();
        let linked: Vec<NodeId> = self.links.values().map(|link| link.node.clone()).collect();
        self.claims.retain(|node| members.contains(node) || linked.contains(node));
    }

    pub(crate) fn retire(&mut self, incarnation: Incarnation) {
        if self.knowledge.retire(incarnation) {
            self.last_noted.remove(&incarnation);
            self.note_changed(incarnation);
        }
    }

    /// Whether an incarnation may be retired. No member may write under it, and each member, even a
    /// silent one, must have shown the same writes of it after a week without new ones.
    fn is_over(&self, incarnation: Incarnation, record: &Record) -> bool {
        let quiet_since = self.last_noted.get(&incarnation).copied().unwrap_or_default() + QUIET_S;
        !self.is_in_use(incarnation)
            && self.claims.of(incarnation).is_none()
            && self.elapsed_s() >= quiet_since
            && self.members().all(|node| self.agrees(node, incarnation, &record.seen, quiet_since))
    }

    fn agrees(&self, node: &str, incarnation: Incarnation, seen: &Seen, since_s: i64) -> bool {
        if node == self.config.node.as_str() {
            return true;
        }
        self.claims.get(&NodeId::from(node)).is_some_and(|claim| {
            claim.at_s >= since_s && claim.context.seen(incarnation) == Some(seen)
        })
    }

    /// Whether a member writes under this incarnation now, as far as it is known.
    pub(crate) fn is_in_use(&self, incarnation: Incarnation) -> bool {
        let fresh_s = self.elapsed_s() - FRESH_S;
        let claim = self.claims.of(incarnation);
        incarnation == self.incarnation
            || self.links.values().any(|link| {
                link.incarnation == incarnation || link.neighbours.contains(&incarnation)
            })
            || claim.is_some_and(|(_, claim)| claim.at_s >= fresh_s)
    }

    /// Takes an incarnation off the list of retired ones, because a member writes under it after
    /// all.
    pub(crate) fn take_back(&mut self, incarnation: Incarnation) {
        if self.knowledge.unretire(incarnation) {
            self.last_noted.insert(incarnation, self.elapsed_s());
            self.note_changed(incarnation);
        }
    }
}
