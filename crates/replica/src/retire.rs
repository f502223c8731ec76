//! Old incarnations, taken out of contexts.
//!
//! Each start of a member adds an incarnation to every context. One that will never write again is
//! put on a list, of which digests carry only a hash. After that all its writes count as noted, so
//! every member must have noted the same ones before: otherwise some writes would be lost.

use crate::{context::Seen, dot::Incarnation, entry::NodeId, notice::Notice, replica::Replica};

/// For how long nothing new of an incarnation may have come.
const QUIET_S: i64 = 7 * 24 * 3600;

impl Replica {
    /// Retires the incarnations that this member may. Nobody retires one because others did; those
    /// hand it over at the end of a pull, together with its writes.
    pub(crate) fn retire_quiet(&mut self) {
        self.forget_claims();
        let quiet = self.knowledge.iter().filter(|(_, record)| !record.retired);
        let quiet = quiet.filter(|(incarnation, record)| self.is_over(*incarnation, &record.seen));
        let quiet: Vec<Incarnation> = quiet.map(|(incarnation, _)| incarnation).collect();
        for incarnation in quiet {
            if self.knowledge.retired_count() < self.config.limits.retired {
                self.retire(incarnation);
            }
        }
    }

    /// Claims of members that were deleted go, once the replica knows members at all.
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

    /// Whether every member, a silent one too, runs another incarnation and showed the same writes
    /// of this one after a week without new ones.
    fn is_over(&self, incarnation: Incarnation, seen: &Seen) -> bool {
        let quiet_since = self.last_noted.get(&incarnation).copied().unwrap_or_default() + QUIET_S;
        let is_linked = self.links.values().any(|link| link.incarnation == incarnation);
        incarnation != self.incarnation
            && !is_linked
            && self.elapsed_s() >= quiet_since
            && self.members().all(|node| self.agrees(node, incarnation, seen, quiet_since))
    }

    fn agrees(&self, node: &str, incarnation: Incarnation, seen: &Seen, since_s: i64) -> bool {
        if node == self.config.node.as_str() {
            return true;
        }
        self.claims.get(&NodeId::from(node)).is_some_and(|claim| {
            claim.incarnation != incarnation
                && claim.at_s >= since_s
                && claim.context.seen(incarnation) == Some(seen)
        })
    }

    /// The others took this running member for an old one. Its writes would count as noted before
    /// they are made, so it goes on under a new name, and says again what it runs.
    pub(crate) fn leave_retired(&mut self) {
        if !self.knowledge.is_retired(self.incarnation) {
            return;
        }
        self.incarnation = Incarnation(self.random.bits());
        self.notice(Notice::Retired, Notice::Retired);
        for (key, own) in self.own.clone() {
            self.say_again(&key, own.value);
        }
    }
}
