//! All that a member has noted: its context, the retired incarnations, and the floors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    context::{Context, Seen},
    dot::{Dot, Incarnation},
    random::mixed,
};

/// The noted writes of one incarnation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The noted writes.
    pub seen: Seen,
    /// The highest counter of a tombstone that was dropped here, or by a member whose context was
    /// joined. A pull cannot bring such a delete as an entry any more, so a member that has not
    /// noted it needs the list of keys.
    pub floor: u64,
    /// Whether it is unlikely to write again. Digests no longer name it; they carry only a hash
    /// over all such records.
    pub retired: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    records: BTreeMap<Incarnation, Record>,
    retired_count: usize,
    /// A sum of hashes of the retired incarnations with their writes. It is equal for equal lists.
    retired_hash: u64,
}

impl Knowledge {
    pub(crate) fn get(&self, incarnation: Incarnation) -> Option<&Record> {
        self.records.get(&incarnation)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Incarnation, &Record)> {
        self.from(Incarnation(0))
    }

    /// The records of the incarnations from `first` on, in their order.
    pub(crate) fn from(&self, first: Incarnation) -> impl Iterator<Item = (Incarnation, &Record)> {
        self.records.range(first..).map(|(incarnation, record)| (*incarnation, record))
    }

    /// Whether the write is noted.
    pub(crate) fn has(&self, dot: Dot) -> bool {
        self.records.get(&dot.incarnation).is_some_and(|record| record.seen.has(dot.counter))
    }

    pub(crate) fn is_retired(&self, incarnation: Incarnation) -> bool {
        self.records.get(&incarnation).is_some_and(|record| record.retired)
    }

    pub(crate) fn retired_hash(&self) -> u64 {
        self.retired_hash
    }

    pub(crate) fn retired_count(&self) -> usize {
        self.retired_count
    }

    pub(crate) fn unretired_count(&self) -> usize {
        self.records.len() - self.retired_count
    }

    /// The noted writes of all incarnations that are not retired.
    pub(crate) fn context(&self) -> Context {
        let unretired = self.iter().filter(|(_, record)| !record.retired);
        unretired.map(|(incarnation, record)| (incarnation, record.seen.clone())).collect()
    }

    /// The noted writes of all incarnations, including retired ones.
    pub(crate) fn all(&self) -> Context {
        self.iter().map(|(incarnation, record)| (incarnation, record.seen.clone())).collect()
    }

    /// The noted writes of the retired incarnations.
    pub(crate) fn retired(&self) -> Context {
        let retired = self.iter().filter(|(_, record)| record.retired);
        retired.map(|(incarnation, record)| (incarnation, record.seen.clone())).collect()
    }

    /// Whether this context is equal to the own one.
    pub(crate) fn is(&self, context: &Context) -> bool {
        let unretired = self.iter().filter(|(_, record)| !record.retired);
        unretired.map(|(incarnation, record)| (incarnation, &record.seen)).eq(context.iter())
    }

    /// Whether `context` has noted a write that is not noted here.
    pub(crate) fn lacks(&self, context: &Context) -> bool {
        context.iter().any(|(incarnation, seen)| match self.records.get(&incarnation) {
            Some(record) => record.seen.lacks(seen, u64::MAX),
            None => true,
        })
    }

    /// How many incarnations would be unretired after joining `context`.
    pub(crate) fn unretired_after(&self, context: &Context) -> usize {
        let is_new = |(incarnation, seen): &(Incarnation, &Seen)| {
            let record = self.records.get(incarnation);
            record.is_none_or(|record| record.retired && record.seen.lacks(seen, u64::MAX))
        };
        self.unretired_count() + context.iter().filter(is_new).count()
    }

    /// How many holes the dot's incarnation would have after the write is noted.
    pub(crate) fn holes_after(&self, dot: Dot) -> usize {
        match self.records.get(&dot.incarnation) {
            Some(record) => record.seen.holes_after(dot.counter),
            None => usize::from(dot.counter > 1),
        }
    }

    /// Notes a write. If its incarnation was retired, it no longer is.
    pub(crate) fn note(&mut self, dot: Dot) {
        if !self.has(dot) {
            self.unretire(dot.incarnation);
            self.records.entry(dot.incarnation).or_default().seen.note(dot.counter);
        }
    }

    /// Notes writes of an incarnation. If it was retired with fewer, it no longer is.
    pub(crate) fn join(&mut self, incarnation: Incarnation, seen: &Seen) {
        let known = self.records.get(&incarnation);
        if known.is_none_or(|record| record.seen.lacks(seen, u64::MAX)) {
            self.unretire(incarnation);
            self.records.entry(incarnation).or_default().seen.join(seen);
        }
    }

    /// Raises a floor. Returns false if it was at least as high before, or if no write of the
    /// incarnation is noted: a record without writes could not be read again.
    pub(crate) fn raise_floor(&mut self, incarnation: Incarnation, counter: u64) -> bool {
        let Some(record) = self.records.get_mut(&incarnation) else { return false };
        let raised = counter > record.floor;
        record.floor = record.floor.max(counter);
        raised
    }

    /// Puts an incarnation on the list of retired ones. Returns false if nothing changed.
    pub(crate) fn retire(&mut self, incarnation: Incarnation) -> bool {
        self.set_retired(incarnation, true)
    }

    /// Takes an incarnation off the list of retired ones. Returns false if nothing changed.
    pub(crate) fn unretire(&mut self, incarnation: Incarnation) -> bool {
        self.set_retired(incarnation, false)
    }

    fn set_retired(&mut self, incarnation: Incarnation, retired: bool) -> bool {
        let Some(record) = self.records.get_mut(&incarnation) else { return false };
        if record.retired == retired {
            return false;
        }
        record.retired = retired;
        let hash = hash(incarnation, &record.seen);
        if retired {
            self.retired_count += 1;
            self.retired_hash = self.retired_hash.wrapping_add(hash);
        } else {
            self.retired_count -= 1;
            self.retired_hash = self.retired_hash.wrapping_sub(hash);
        }
        true
    }

    /// Takes in a record from the disk.
    pub(crate) fn restore(&mut self, incarnation: Incarnation, record: Record) {
        let retired = record.retired;
        self.records.insert(incarnation, Record { retired: false, ..record });
        if retired {
            self.retire(incarnation);
        }
    }
}

fn hash(incarnation: Incarnation, seen: &Seen) -> u64 {
    let start = mixed(incarnation.0) ^ seen.max();
    let holes = seen.holes().iter().flat_map(|(from, to)| [*from, *to]);
    mixed(holes.fold(start, |sum, bound| mixed(sum) ^ bound))
}
