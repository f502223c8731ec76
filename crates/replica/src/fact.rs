//! The facts on the disk, as bytes under names.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    dot::Incarnation,
    entry::{Entry, Key},
    knowledge::Record,
    table::Layer,
};

/// One thing to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A version of an object, or that its place is empty now.
    Entry {
        /// Its place.
        layer: Layer,
        /// The object.
        key: Key,
        /// The version, with the wall clock in milliseconds when it was taken in; `None` if the
        /// place is empty.
        entry: Option<(Arc<Entry>, u64)>,
    },
    /// The noted writes of an incarnation.
    Record {
        /// The incarnation.
        incarnation: Incarnation,
        /// The noted writes.
        record: Record,
    },
    /// The last used generation.
    Generation(u64),
}

/// The name of a fact. A new fact replaces the stored one of the same name.
#[derive(Serialize, Deserialize)]
enum Name {
    Entry(Layer, Key),
    Record(Incarnation),
    Generation,
}

impl Fact {
    /// The name and the bytes of the fact; without bytes, the stored fact is to be removed.
    pub fn to_bytes(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        match self {
            Self::Entry { layer, key, entry } => {
                let bytes = entry.as_ref().map(|(entry, at)| bytes(&(&**entry, at)));
                (bytes_of_name(&Name::Entry(*layer, key.clone())), bytes)
            }
            Self::Record { incarnation, record } => {
                (bytes_of_name(&Name::Record(*incarnation)), Some(bytes(record)))
            }
            Self::Generation(generation) => {
                (bytes_of_name(&Name::Generation), Some(bytes(generation)))
            }
        }
    }
}

fn bytes_of_name(name: &Name) -> Vec<u8> {
    bytes(name)
}

#[expect(
    clippy::expect_used,
    reason = "postcard writes any list whose length is known, as all are"
)]
fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("every list knows its length")
}

/// A stored fact cannot be read: it is damaged, or of a newer version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored fact of the cluster cannot be read")]
pub struct Unreadable;

/// All that was stored.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    pub(crate) entries: BTreeMap<(Layer, Key), (Arc<Entry>, u64)>,
    pub(crate) records: BTreeMap<Incarnation, Record>,
    pub(crate) generation: u64,
}

impl Stored {
    /// Reads all facts, as [`Fact::to_bytes`] wrote them.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read. It would not be safe to start without it: a context without
    /// its entries counts objects as deleted.
    pub fn from_bytes<'a>(
        facts: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Self, Unreadable> {
        let mut stored = Self::default();
        for (name, value) in facts {
            stored.apply(&read(name, value).ok_or(Unreadable)?);
        }
        Ok(stored)
    }

    /// Applies one fact, as a disk does.
    pub fn apply(&mut self, fact: &Fact) {
        match fact {
            Fact::Entry { layer, key, entry: Some(entry) } => {
                self.entries.insert((*layer, key.clone()), entry.clone());
            }
            Fact::Entry { layer, key, entry: None } => {
                self.entries.remove(&(*layer, key.clone()));
            }
            Fact::Record { incarnation, record } => {
                self.records.insert(*incarnation, record.clone());
            }
            Fact::Generation(generation) => self.generation = *generation,
        }
    }
}

fn read(name: &[u8], value: &[u8]) -> Option<Fact> {
    Some(match postcard::from_bytes(name).ok()? {
        Name::Entry(layer, key) => {
            let (entry, at): (Entry, u64) = postcard::from_bytes(value).ok()?;
            Fact::Entry { layer, key, entry: Some((entry.into(), at)) }
        }
        Name::Record(incarnation) => {
            Fact::Record { incarnation, record: postcard::from_bytes(value).ok()? }
        }
        Name::Generation => Fact::Generation(postcard::from_bytes(value).ok()?),
    })
}
