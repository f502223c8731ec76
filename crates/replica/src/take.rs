//! Takes in single entries of other members.

use std::sync::Arc;

use crate::{
    dot::Dot,
    entry::{Entry, Key},
    input::LinkId,
    notice::Notice,
    replica::Replica,
    table::{Layer, size},
};

/// How an entry arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// As a delta, sent when it was written. Earlier writes may be missing.
    Delta,
    /// In the answer to a pull, whose end fills all holes.
    Pull,
}

impl Replica {
    /// Takes in one version. Returns false if a bound keeps it out. Then it is not noted either, so
    /// that it is sent again once there is room.
    pub(crate) fn take(&mut self, from: LinkId, key: &Key, entry: &Arc<Entry>, by: By) -> bool {
        if self.knowledge.has(entry.dot) {
            return true;
        }
        if !self.can_note(entry.dot, by) || !self.accept(key, entry) {
            return false;
        }
        self.note(entry.dot);
        self.plan_hints(from, entry.dot.incarnation);
        true
    }

    /// Whether noting the dot stays within the bounds. A delta that would leave too many holes is
    /// left for a pull, since contexts must stay short.
    fn can_note(&mut self, dot: Dot, by: By) -> bool {
        let limits = &self.config.limits;
        let record = self.knowledge.get(dot.incarnation);
        if record.is_none() && self.knowledge.unretired_count() >= limits.incarnations {
            self.notice_full("incarnations");
            return false;
        }
        let most = if by == By::Pull { limits.pull_holes } else { limits.holes };
        let before = record.map_or(0, |record| record.seen.holes().len());
        let after = self.knowledge.holes_after(dot);
        after <= before || after <= most
    }

    /// Puts a version in its place, if it has one. Returns false if a bound keeps it out.
    fn accept(&mut self, key: &Key, entry: &Arc<Entry>) -> bool {
        if self.is_dead_here(key, entry) {
            return true;
        }
        match self.layer_for(key, entry) {
            None => true,
            Some(Layer::Held) if !self.config.rules.held => true,
            Some(layer) => {
                let fits = self.fits(layer, key, entry);
                if fits {
                    self.put_version(layer, key, entry.clone());
                }
                fits
            }
        }
    }

    /// Whether the object was here and was deleted: there is no entry under the key, and the
    /// object's first write is noted.
    fn is_dead_here(&self, key: &Key, entry: &Entry) -> bool {
        self.config.rules.births && self.table.top(key).is_none() && self.knowledge.has(entry.birth)
    }

    /// The place where a version belongs; `None` if a greater one is here.
    fn layer_for(&self, key: &Key, entry: &Entry) -> Option<Layer> {
        let (layer, rival) = if self.is_ahead(key, entry) {
            (Layer::Held, self.table.top(key))
        } else {
            (Layer::Present, self.table.present(key))
        };
        rival.is_none_or(|rival| entry.beats(rival)).then_some(layer)
    }

    pub(crate) fn fits(&mut self, layer: Layer, key: &Key, entry: &Entry) -> bool {
        if entry.dead {
            return true;
        }
        let bound = self.exceeded(layer, key, entry);
        match bound {
            None => true,
            Some("bytes of one object") => {
                let notice = Notice::TooLarge { key: key.clone() };
                self.notice(notice.clone(), notice);
                false
            }
            Some(bound) => {
                self.notice_full(bound);
                false
            }
        }
    }

    /// The bound that a live version would exceed. Held versions count as objects, since there must
    /// be room for them when their time comes.
    fn exceeded(&self, layer: Layer, key: &Key, entry: &Entry) -> Option<&'static str> {
        let limits = &self.config.limits;
        let old = self.table.at(layer, key);
        let is_new = old.is_none_or(|old| old.dead);
        let bytes = self.table.bytes() - old.map_or(0, |old| size(key, old)) + size(key, entry);
        let objects = self.table.live_count() + self.table.held_count();
        if entry.value.len() > limits.value_bytes {
            Some("bytes of one object")
        } else if is_new && objects >= limits.objects {
            Some("objects")
        } else if is_new && layer == Layer::Held && self.table.held_count() >= limits.held {
            Some("held versions")
        } else {
            (bytes > limits.total_bytes).then_some("bytes")
        }
    }

    /// Puts a version into its place. A held version that is no longer greater than the new one is
    /// removed.
    pub(crate) fn put_version(&mut self, layer: Layer, key: &Key, entry: Arc<Entry>) {
        if layer == Layer::Held {
            self.notice_held(key, &entry);
            return self.put(layer, key, Some(entry));
        }
        if self.table.held(key).is_some_and(|held| !held.beats(&entry)) {
            self.put(Layer::Held, key, None);
        }
        let is_dead = entry.dead;
        self.put(layer, key, Some(entry));
        if is_dead {
            self.bound_tombstones();
        }
    }

    pub(crate) fn note(&mut self, dot: Dot) {
        self.knowledge.note(dot);
        self.note_changed(dot.incarnation);
        self.last_noted.insert(dot.incarnation, self.elapsed_s());
    }

    pub(crate) fn notice_full(&mut self, bound: &'static str) {
        let notice = Notice::Full { bound };
        self.notice(notice.clone(), notice);
    }
}
