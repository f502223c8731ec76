//! All that a member has noted: its context, the retired incarnations, and the floors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    context::{Context, Seen},
    dot::{Dot, Incarnation},
    random::mixed,
};

/// What is noted of one incarnation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The noted writes.
    pub seen: Seen,
    /// The highest counter of a tombstone that was dropped, here or by a member whose context was
    /// joined. Such a delete is no longer an entry that a pull could bring: a member that has not
    /// noted it needs the list of keys.
    pub floor: u64,
    /// Whether it will never write again, as every member knows. All its writes count as noted, and
    /// digests no longer name it.
    pub retired: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    records: BTreeMap<Incarnation, Record>,
    retired_count: usize,
    /// A sum over the retired incarnations, which is equal where the lists are.
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
        let record = self.records.get(&dot.incarnation);
        record.is_some_and(|record| record.retired || record.seen.has(dot.counter))
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

    /// The noted writes of all incarnations, retired ones among them.
    pub(crate) fn all(&self) -> Context {
        self.iter().map(|(incarnation, record)| (incarnation, record.seen.clone())).collect()
    }

    /// Whether this context is the own one.
    pub(crate) fn is(&self, context: &Context) -> bool {
        let unretired = self.iter().filter(|(_, record)| !record.retired);
        unretired.map(|(incarnation, record)| (incarnation, &record.seen)).eq(context.iter())
    }

    /// Whether `context` has noted a write that is not noted here.
    pub(crate) fn lacks(&self, context: &Context) -> bool {
        context.iter().any(|(incarnation, seen)| match self.records.get(&incarnation) {
            Some(record) => !record.retired && record.seen.lacks(seen, u64::MAX),
            None => true,
        })
    }

    /// How many incarnations would be unretired after joining `context`.
    pub(crate) fn unretired_after(&self, context: &Context) -> usize {
        let new = context.iter().filter(|(incarnation, _)| !self.records.contains_key(incarnation));
        self.unretired_count() + new.count()
    }

    /// How many holes its incarnation would have after the write is noted.
    pub(crate) fn holes_after(&self, dot: Dot) -> usize {
        match self.records.get(&dot.incarnation) {
            Some(record) => record.seen.holes_after(dot.counter),
            None => usize::from(dot.counter > 1),
        }
    }

    pub(crate) fn note(&mut self, dot: Dot) {
        self.records.entry(dot.incarnation).or_default().seen.note(dot.counter);
    }

    pub(crate) fn join(&mut self, incarnation: Incarnation, seen: &Seen) {
        self.records.entry(incarnation).or_default().seen.join(seen);
    }

    /// Raises a floor. False: it was as high before.
    pub(crate) fn raise_floor(&mut self, incarnation: Incarnation, counter: u64) -> bool {
        let record = self.records.entry(incarnation).or_default();
        let raised = counter > record.floor;
        record.floor = record.floor.max(counter);
        raised
    }

    /// Puts an incarnation on the list of retired ones. False: it was there before.
    pub(crate) fn retire(&mut self, incarnation: Incarnation) -> bool {
        let record = self.records.entry(incarnation).or_default();
        if std::mem::replace(&mut record.retired, true) {
            return false;
        }
        self.retired_count += 1;
        self.retired_hash = self.retired_hash.wrapping_add(mixed(incarnation.0));
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
