//! When tombstones are dropped.
//!
//! A tombstone only makes a delete known fast. The delete itself is kept by contexts: an object
//! whose birth is noted, and that is absent, is dead. So the rules here only decide when a
//! tombstone is no longer needed. If one is dropped too early, an asker needs the list of keys, and
//! nothing else happens.

use std::time::{Duration, Instant};

use crate::{
    dot::Dot,
    entry::{Entry, Key, Kind, NodeId},
    replica::Replica,
    table::Layer,
};

/// How often tombstones and incarnations are looked at while there are links.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How often tombstones that are old enough, but not known to all members, are looked at without
/// links.
const LOOK_ALONE_EVERY: Duration = Duration::from_secs(3600);
/// After this time without a sign of a member, tombstones no longer wait for it.
const SILENT_S: i64 = 30 * 24 * 3600;
/// How long tombstones of a plain peer's objects stay. Plain peers have no contexts, and each
/// member that adopts an object gives it another birth. So here the delete is kept by the tombstone
/// itself.
const ADOPTED_AGE: Duration = Duration::from_secs(90 * 24 * 3600);

impl Replica {
    /// Plans the next look at tombstones and incarnations. Without links and tombstones there is
    /// none.
    pub(crate) fn plan_tidying(&mut self) {
        let wanted = self.next_tidying();
        self.tidy_at = wanted.map(|at| self.tidy_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn next_tidying(&self) -> Option<Instant> {
        if !self.links.is_empty() {
            return Some(self.now + LOOK_EVERY);
        }
        let (at_ms, _) = self.table.tombstones().next()?;
        let due = Duration::from_millis(at_ms) + self.config.tombstone_age;
        let wait = due.saturating_sub(self.wall);
        self.now.checked_add(if wait.is_zero() { LOOK_ALONE_EVERY } else { wait })
    }

    /// Drops what is no longer needed.
    pub(crate) fn tidy(&mut self) {
        self.tidy_at = None;
        // If tombstones were dropped now, a pull that is being answered would have to begin again.
        // Pulls are short, so this waits.
        if self.links.values().all(|link| link.answer.is_none()) {
            self.collect_due();
        }
        self.retire_quiet();
    }

    fn collect_due(&mut self) {
        let due = |(at_ms, key): &(u64, &Key)| {
            self.table.present(key).is_some_and(|entry| self.is_collectable(*at_ms, entry))
        };
        let due: Vec<Key> =
            self.table.tombstones().filter(due).map(|(_, key)| key.clone()).collect();
        due.iter().for_each(|key| self.collect(key));
    }

    fn is_collectable(&self, at_ms: u64, entry: &Entry) -> bool {
        let age = if entry.adopted { ADOPTED_AGE } else { self.config.tombstone_age };
        Duration::from_millis(at_ms).saturating_add(age) <= self.wall && self.is_covered(entry.dot)
    }

    /// Whether every member has noted the write, except for members that have been silent for a
    /// month.
    fn is_covered(&self, dot: Dot) -> bool {
        let is_retired = self.knowledge.is_retired(dot.incarnation);
        is_retired
            || self.members().all(|node| {
                node == self.config.node.as_str()
                    || self.claims.has(&NodeId::from(node), dot)
                    || self.is_silent(node)
            })
    }

    fn is_silent(&self, node: &str) -> bool {
        let shown_s = self.claims.get(&NodeId::from(node)).map_or(0, |claim| claim.at_s);
        self.elapsed_s() - shown_s > SILENT_S
    }

    /// The ids of all members; this one is among them if it wrote its entry.
    pub(crate) fn members(&self) -> impl Iterator<Item = &str> {
        self.entries_of(Kind::MEMBER).map(|(key, _)| &*key.id)
    }

    /// Drops the oldest tombstones, whatever their age, while there are more than the bound allows.
    pub(crate) fn bound_tombstones(&mut self) {
        while self.table.tombstone_count() > self.config.limits.tombstones {
            let Some(oldest) = self.table.tombstones().next().map(|(_, key)| key.clone()) else {
                return;
            };
            self.collect(&oldest);
        }
    }

    /// Drops one tombstone. The object's births are noted, so that a version of the deleted object
    /// that comes later is known to be dead. The floor is raised, so that members which do not know
    /// of the delete get the list of keys.
    fn collect(&mut self, key: &Key) {
        let Some(entry) = self.table.present(key).cloned() else {
            return;
        };
        self.put(Layer::Present, key, None);
        for birth in entry.earlier.iter().chain([&entry.birth]) {
            if self.config.rules.births && !self.knowledge.has(*birth) {
                self.note(*birth);
            }
        }
        self.raise_floor(entry.dot);
        self.cut_answers();
    }

    pub(crate) fn raise_floor(&mut self, dot: Dot) {
        if self.knowledge.raise_floor(dot.incarnation, dot.counter) {
            self.note_changed(dot.incarnation);
        }
    }

    /// Drops tombstones whatever their age, and whether or not other members know of the delete.
    /// The simulator uses it to show that safety needs no rule about time. There are two
    /// exceptions: tombstones of plain peers' objects, and those of sessions that began several
    /// lives. Copies of a disk may begin lives that do not know of each other, so for such sessions
    /// the births prove less.
    #[doc(hidden)]
    pub fn collect_now(&mut self) {
        let is_plain = |key: &&Key| {
            let entry = self.table.present(key);
            entry.is_some_and(|entry| !entry.adopted && entry.earlier.is_empty())
        };
        let keys: Vec<Key> =
            self.table.tombstones().map(|(_, key)| key).filter(is_plain).cloned().collect();
        keys.iter().for_each(|key| self.collect(key));
        self.finish();
    }
}
