//! All entries of a member, with the index that finds one by its dot.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    context::Range,
    dot::{Dot, Incarnation},
    entry::{Entry, Key, Kind},
    print::Print,
};

/// The size of an entry beside its texts, for the bound of all bytes.
const ENTRY_BYTES: usize = 256;

/// The two places of an object: one for the version that counts now, and one for a version that
/// waits for its time. A held version is always greater than the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Layer {
    /// The version that counts now: what is shown, or a tombstone.
    Present,
    /// The version that waits for its time.
    Held,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    present: BTreeMap<Key, Arc<Entry>>,
    held: BTreeMap<Key, Arc<Entry>>,
    /// Finds keys by dot. With it, a pull costs as much as two members differ, whatever the number
    /// of objects.
    index: BTreeMap<Dot, Key>,
    /// The tombstones, by the wall clock (milliseconds) when they were taken in.
    tombstones: BTreeSet<(u64, Key)>,
    buried: BTreeMap<Key, u64>,
    print: Print,
    bytes: usize,
}

impl Table {
    pub(crate) fn present(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.present.get(key)
    }

    pub(crate) fn held(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.held.get(key)
    }

    pub(crate) fn at(&self, layer: Layer, key: &Key) -> Option<&Arc<Entry>> {
        match layer {
            Layer::Present => self.present(key),
            Layer::Held => self.held(key),
        }
    }

    /// The greatest version, held or not. It depends on the context alone, and not on any clock.
    pub(crate) fn top(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.held(key).or_else(|| self.present(key))
    }

    /// The version with this dot, if it is here.
    pub(crate) fn by_dot(&self, dot: Dot) -> Option<(&Key, &Arc<Entry>)> {
        let key = self.index.get(&dot)?;
        let versions = [self.present(key), self.held(key)];
        versions.into_iter().flatten().find(|entry| entry.dot == dot).map(|entry| (key, entry))
    }

    /// Puts an entry in its place, or empties the place. `at_ms` is the wall clock in milliseconds,
    /// from which a tombstone's age counts.
    pub(crate) fn set(&mut self, layer: Layer, key: &Key, entry: Option<Arc<Entry>>, at_ms: u64) {
        let before = self.top(key).cloned();
        let layers = match layer {
            Layer::Present => &mut self.present,
            Layer::Held => &mut self.held,
        };
        let old = match &entry {
            Some(entry) => layers.insert(key.clone(), entry.clone()),
            None => layers.remove(key),
        };
        if let Some(old) = old {
            self.index.remove(&old.dot);
            self.bytes -= size(key, &old);
        }
        if let Some(entry) = &entry {
            self.index.insert(entry.dot, key.clone());
            self.bytes += size(key, entry);
        }
        if layer == Layer::Present {
            self.bury(key, entry.is_some_and(|entry| entry.dead).then_some(at_ms));
        }
        self.reprint(key, before.as_ref());
    }

    fn bury(&mut self, key: &Key, at_ms: Option<u64>) {
        if let Some(at_ms) = self.buried.remove(key) {
            self.tombstones.remove(&(at_ms, key.clone()));
        }
        if let Some(at_ms) = at_ms {
            self.buried.insert(key.clone(), at_ms);
            self.tombstones.insert((at_ms, key.clone()));
        }
    }

    fn reprint(&mut self, key: &Key, before: Option<&Arc<Entry>>) {
        let live = |entry: Option<&Arc<Entry>>| entry.filter(|entry| !entry.dead).map(|e| e.dot);
        let (before, after) = (live(before), live(self.top(key)));
        if before == after {
            return;
        }
        if let Some(dot) = before {
            self.print.remove(key, dot);
        }
        if let Some(dot) = after {
            self.print.add(key, dot);
        }
    }

    /// When a tombstone was taken in, by the wall clock in milliseconds.
    pub(crate) fn buried_at(&self, key: &Key) -> u64 {
        self.buried.get(key).copied().unwrap_or_default()
    }

    /// The tombstones, oldest first.
    pub(crate) fn tombstones(&self) -> impl Iterator<Item = (u64, &Key)> {
        self.tombstones.iter().map(|(at_ms, key)| (*at_ms, key))
    }

    pub(crate) fn tombstone_count(&self) -> usize {
        self.buried.len()
    }

    /// Objects whose present version is live.
    pub(crate) fn live_count(&self) -> usize {
        self.present.len() - self.buried.len()
    }

    pub(crate) fn held_count(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn print(&self) -> &Print {
        &self.print
    }

    /// The present versions, including tombstones, by key.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Key, &Arc<Entry>)> {
        self.present.iter()
    }

    /// The present versions of one kind, including tombstones, by id.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Arc<Entry>)> {
        let first = Key::new(kind, "");
        self.present.range(first..).take_while(move |(key, _)| key.kind == kind)
    }

    pub(crate) fn all_held(&self) -> impl Iterator<Item = (&Key, &Arc<Entry>)> {
        self.held.iter()
    }

    /// All keys above `after`, of present and held versions.
    pub(crate) fn keys_after<'a>(
        &'a self,
        after: Option<&'a Key>,
    ) -> impl Iterator<Item = &'a Key> {
        let from = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let held = self.held.range::<Key, _>(from).map(|(key, _)| key);
        let present = self.present.range::<Key, _>(from).map(|(key, _)| key);
        merged(present, held)
    }

    /// The versions that an incarnation wrote with counters in `range`.
    pub(crate) fn written(
        &self,
        incarnation: Incarnation,
        range: Range,
    ) -> impl Iterator<Item = (&Key, &Arc<Entry>)> {
        let dots = Dot::new(incarnation, range.0)..=Dot::new(incarnation, range.1);
        self.index.range(dots).filter_map(|(dot, _)| self.by_dot(*dot))
    }
}

/// Merges two ascending sequences. A key that is in both comes once.
fn merged<'a>(
    one: impl Iterator<Item = &'a Key>,
    other: impl Iterator<Item = &'a Key>,
) -> impl Iterator<Item = &'a Key> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(left), Some(right)) if left == right => {
            other.next();
            one.next()
        }
        (Some(left), Some(right)) if left > right => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

/// The size of an entry for the bounds, in bytes.
pub(crate) fn size(key: &Key, entry: &Entry) -> usize {
    ENTRY_BYTES + key.id.len() + entry.owner.as_str().len() + entry.value.len()
}
