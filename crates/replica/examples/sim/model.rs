//! The reference model: a plain list of all writes. What a member must have is the greatest write of
//! each object among those that it has noted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use replica::{Dot, Entry, Key, Replica};

#[derive(Debug, Default)]
pub(crate) struct Model {
    writes: BTreeMap<Dot, (Key, Arc<Entry>)>,
}

impl Model {
    /// Notes a write of a member. An error: its dot was used before.
    pub(crate) fn note(&mut self, key: &Key, entry: &Arc<Entry>) -> Result<(), String> {
        let known = self.writes.insert(entry.dot, (key.clone(), entry.clone()));
        match known {
            Some(known) if known != (key.clone(), entry.clone()) => {
                Err(format!("dot {:?} was used twice: {known:?} and {entry:?}", entry.dot))
            }
            _ => Ok(()),
        }
    }

    /// Forgets the writes that were lost in a crash before anybody heard of them.
    pub(crate) fn lose(&mut self, dots: &BTreeSet<Dot>) {
        self.writes.retain(|dot, _| !dots.contains(dot));
    }

    /// Whether the member has exactly what it must have.
    pub(crate) fn check(&self, replica: &Replica) -> Result<(), String> {
        let mut greatest: BTreeMap<&Key, &Arc<Entry>> = BTreeMap::new();
        for (dot, (key, entry)) in &self.writes {
            if replica.has_noted(*dot) {
                let place = greatest.entry(key).or_insert(entry);
                if entry.beats(place) {
                    *place = entry;
                }
            }
        }
        greatest.retain(|_, entry| !entry.dead);
        let has = tops(replica);
        let expected: BTreeMap<&Key, Dot> =
            greatest.iter().map(|(key, entry)| (*key, entry.dot)).collect();
        let differs = |key: &&&Key| has.get(**key) != expected.get(**key);
        let keys: BTreeSet<&Key> = has.keys().chain(expected.keys()).copied().collect();
        match keys.iter().find(differs) {
            None => Ok(()),
            Some(key) => Err(format!(
                "{key:?} is {:?}; by all noted writes it is {:?}",
                has.get(*key),
                expected.get(*key)
            )),
        }
    }
}

/// The greatest live version of each object, held ones among them.
pub(crate) fn tops(replica: &Replica) -> BTreeMap<&Key, Dot> {
    let present = replica.entries().map(|(key, entry)| (key, entry.dot));
    let held = replica.all_held().map(|(key, entry)| (key, entry.dot));
    present.chain(held).collect()
}
