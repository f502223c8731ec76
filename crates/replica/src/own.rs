//! This member's authority over the sessions that it runs.
//!
//! Only their owner knows whether they run. Other members may show a session otherwise: a disk was
//! restored, a write was lost, or a member deleted the session of a machine that seemed lost. Then
//! the owner writes the session again, above their version. It deletes a session that names it as
//! owner and that it does not run.

use std::{sync::Arc, time::Duration};

use crate::{
    entry::{Entry, Key, Kind, NodeId},
    input::Change,
    notice::Notice,
    replica::Replica,
    table::Layer,
};

/// How long a member whose id appeared twice does not repeat the versions of its sessions.
const SILENCE: Duration = Duration::from_secs(10);

impl Replica {
    /// Notes the sessions that this member owns by its disk. For these the disk is the truth.
    pub(crate) fn restore_own(&mut self, layer: Layer, key: &Key, entry: &Arc<Entry>) {
        let is_own = key.kind == Kind::SESSION && entry.owner == self.config.node;
        if is_own && layer == Layer::Present && !entry.dead {
            self.own.insert(key.clone(), entry.clone());
        }
    }

    pub(crate) fn expect(&mut self, key: Key) {
        // The entry may be here already, since the former owner does not wait for this input.
        self.touched.insert(key.clone());
        self.expected.insert(key);
    }

    pub(crate) fn unexpect(&mut self, key: &Key) {
        self.expected.remove(key);
        self.touched.insert(key.clone());
    }

    pub(crate) fn fall_silent(&mut self) {
        self.silent_until = Some(self.now + SILENCE);
    }

    /// Compares all sessions again after the silence.
    pub(crate) fn speak_again(&mut self) {
        self.silent_until = None;
        self.touched.extend(self.own.keys().cloned());
        let sessions = self.entries_of(Kind::SESSION);
        let mine = sessions.filter(|(_, entry)| entry.owner == self.config.node);
        let mine: Vec<Key> = mine.map(|(key, _)| key.clone()).collect();
        self.touched.extend(mine);
    }

    /// Compares the sessions that changed in this step with this member's own versions of them.
    pub(crate) fn settle_own(&mut self) {
        if self.silent_until.is_some() {
            return;
        }
        if !self.config.rules.reassertion {
            self.touched.clear();
        }
        while let Some(key) = self.touched.pop_first() {
            self.settle(&key);
        }
    }

    fn settle(&mut self, key: &Key) {
        let me = self.config.node.clone();
        let present = self.table.present(key).cloned();
        let own = self.own.get(key).cloned();
        match (own, present) {
            (Some(own), Some(entry)) if has_moved(&own, &entry, &me) => {
                self.own.remove(key);
            }
            (Some(own), Some(entry)) if self.take_move_back(key, &own, &entry) => {
                self.own.insert(key.clone(), entry);
            }
            (Some(own), Some(entry)) if is_said(&own, &entry, &me) => {
                self.own.insert(key.clone(), entry);
            }
            (Some(own), _) => self.say_again(key, own.value.clone()),
            (None, Some(entry)) if !entry.dead && entry.owner == me => self.meet(key, &entry),
            (None, _) => {}
        }
    }

    /// Handles a session that moves back here while this disk still has it from before it moved
    /// away. Returns whether that is the case.
    fn take_move_back(&mut self, key: &Key, own: &Entry, entry: &Entry) -> bool {
        entry.owner == self.config.node
            && entry.rank.moves > own.rank.moves
            && self.expected.remove(key)
    }

    pub(crate) fn say_again(&mut self, key: &Key, value: Arc<str>) {
        // If a bound refuses the write, the operator has a notice, and the next change of the
        // session tries again.
        let node = self.config.node.clone();
        let _ = self.write_session(key, &node, value, Change::Update);
    }

    /// Handles a session that names this member as owner, and that it does not run: it was
    /// expected, or is deleted.
    fn meet(&mut self, key: &Key, entry: &Arc<Entry>) {
        if self.expected.remove(key) {
            self.own.insert(key.clone(), entry.clone());
            return;
        }
        let notice = Notice::Forgotten { key: key.clone() };
        self.notice(notice.clone(), notice);
        // Deletes are never refused for a bound, and the object is here, so this cannot fail.
        let _ = self.delete(key);
    }
}

/// Whether the session moved away by a hand-over that this disk does not remember. Of two
/// hand-overs that did not know of each other, the later one counts. The owners' ids only decide
/// which of two members gives way.
pub(crate) fn has_moved(own: &Entry, entry: &Entry, me: &NodeId) -> bool {
    let place = |entry: &Entry| (entry.rank.moves, entry.rank.life);
    entry.owner != *me && entry.rank.moves > 0 && (place(entry), &entry.owner) > (place(own), me)
}

fn is_said(own: &Entry, entry: &Entry, me: &NodeId) -> bool {
    !entry.dead && entry.owner == *me && entry.value == own.value
}
