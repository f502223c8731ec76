//! Views of the replica, and figures.

use std::sync::Arc;

use crate::{
    context::Context,
    dot::{Dot, Incarnation},
    entry::{Entry, Key, Kind, NodeId},
    fact::{Fact, Stored},
    replica::Replica,
    table::Layer,
};

/// Figures for the operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Shown objects.
    pub objects: usize,
    /// Deletes that are still entries.
    pub tombstones: usize,
    /// Versions that wait for their time.
    pub held: usize,
    /// Roughly the bytes of all entries with their keys.
    pub bytes: usize,
    /// Incarnations in the context.
    pub incarnations: usize,
    /// Incarnations on the list of retired ones.
    pub retired: usize,
    /// Bytes of deltas that wait for the disk.
    pub waiting_bytes: usize,
    /// Open links.
    pub links: usize,
    /// Pulls under way from here.
    pub pulls: usize,
}

impl Replica {
    /// The shown version of an object.
    pub fn get(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.table.present(key).filter(|entry| !entry.dead)
    }

    /// All shown objects, by key.
    pub fn entries(&self) -> impl Iterator<Item = (&Key, &Arc<Entry>)> {
        self.table.entries().filter(|(_, entry)| !entry.dead)
    }

    /// The shown objects of one kind, by id.
    pub fn entries_of(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Arc<Entry>)> {
        self.table.of_kind(kind).filter(|(_, entry)| !entry.dead)
    }

    /// Whether the object was deleted and its tombstone is still here.
    pub fn is_deleted(&self, key: &Key) -> bool {
        self.table.present(key).is_some_and(|entry| entry.dead)
    }

    /// The version of an object that waits for its time.
    pub fn held(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.table.held(key)
    }

    /// All versions that wait for their time.
    pub fn all_held(&self) -> impl Iterator<Item = (&Key, &Arc<Entry>)> {
        self.table.all_held()
    }

    /// Whether this member runs the session, by its own writes or by its disk. False for a session
    /// that has moved away since.
    pub fn runs(&self, key: &Key) -> bool {
        self.own.contains_key(key)
    }

    /// The incarnation under which this member writes now.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The noted writes of all incarnations that are not retired.
    pub fn context(&self) -> Context {
        self.knowledge.context()
    }

    /// The noted writes of all incarnations, including retired ones.
    pub fn noted(&self) -> Context {
        self.knowledge.all()
    }

    /// Whether the write is noted.
    pub fn has_noted(&self, dot: Dot) -> bool {
        self.knowledge.has(dot)
    }

    /// The fingerprint of all live entries; for an object with a held version, that version counts.
    /// Members with equal entries have equal prints, whatever their clocks say.
    pub fn print(&self) -> u128 {
        self.table.print().total()
    }

    /// The members to which a linked member has links, by its last digest.
    pub fn neighbours(&self, node: &NodeId) -> Vec<NodeId> {
        let link = self.links.values().find(|link| link.node == *node);
        let incarnations = link.into_iter().flat_map(|link| &link.neighbours);
        incarnations.filter_map(|incarnation| self.node_of(*incarnation).cloned()).collect()
    }

    pub(crate) fn node_of(&self, incarnation: Incarnation) -> Option<&NodeId> {
        if incarnation == self.incarnation {
            return Some(&self.config.node);
        }
        let link = self.links.values().find(|link| link.incarnation == incarnation);
        link.map(|link| &link.node).or_else(|| self.claims.of(incarnation).map(|(node, _)| node))
    }

    /// Whether this member and all linked ones have noted the same writes, by their last digests.
    pub fn is_level(&self) -> bool {
        self.links
            .values()
            .all(|link| link.shown.as_ref().is_some_and(|shown| self.knowledge.is(&shown.context)))
    }

    /// Figures for the operator.
    pub fn figures(&self) -> Figures {
        Figures {
            objects: self.table.live_count(),
            tombstones: self.table.tombstone_count(),
            held: self.table.held_count(),
            bytes: self.table.bytes(),
            incarnations: self.knowledge.unretired_count(),
            retired: self.knowledge.retired_count(),
            waiting_bytes: self.outbox.waiting_bytes(),
            links: self.links.len(),
            pulls: self.links.values().filter(|link| link.ask.is_some()).count(),
        }
    }

    /// All facts, as a disk would hold them that was written from nothing.
    pub fn facts(&self) -> Stored {
        let mut stored = Stored { generation: self.generation, ..Stored::default() };
        let present = self.table.entries().map(|(key, entry)| (Layer::Present, key, entry));
        let held = self.table.all_held().map(|(key, entry)| (Layer::Held, key, entry));
        for (layer, key, entry) in present.chain(held) {
            let at = self.table.buried_at(key);
            let entry = Some((entry.clone(), at));
            stored.apply(&Fact::Entry { layer, key: key.clone(), entry });
        }
        stored.records.extend(self.knowledge.iter().map(|(i, record)| (i, record.clone())));
        stored
    }
}
