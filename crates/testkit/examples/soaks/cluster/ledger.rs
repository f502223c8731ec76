//! The objects that should be there: what members acknowledged, and what they left open.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use testkit::{Random, workspace::Mark};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Session,
    Project,
}

/// Whether a delete was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    There,
    /// A delete was asked for, and not acknowledged.
    Open,
    Deleted,
}

#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// The name that was acknowledged last.
    pub(crate) name: String,
    /// Names that were asked for, and not acknowledged.
    pub(crate) maybe: Vec<String>,
    pub(crate) fate: Fate,
    /// The member that has it, and how often that was killed before.
    pub(crate) owner: usize,
    pub(crate) kills: u64,
    /// In the processes of a session.
    pub(crate) mark: Option<Mark>,
    /// Nobody else changes it now.
    is_taken: bool,
}

impl Object {
    pub(crate) fn new(name: String, owner: usize, kills: u64) -> Self {
        let (maybe, fate) = (Vec::new(), Fate::There);
        Self { name, maybe, fate, owner, kills, mark: None, is_taken: false }
    }

    pub(crate) fn marked(self, mark: Mark) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// For its maker only.
    pub(crate) fn taken(self) -> Self {
        Self { is_taken: true, ..self }
    }

    pub(crate) fn may_be_called(&self, name: &str) -> bool {
        self.name == name || self.maybe.iter().any(|maybe| maybe == name)
    }
}

type Objects = BTreeMap<(Kind, String), Object>;

#[derive(Default)]
pub(crate) struct Ledger(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    objects: Objects,
    last_name: u64,
}

impl Ledger {
    /// A name that nothing else has.
    pub(crate) fn name(&self) -> String {
        let mut inner = self.lock();
        inner.last_name += 1;
        format!("name {}", inner.last_name)
    }

    pub(crate) fn made(&self, kind: Kind, id: &str, object: Object) {
        self.lock().objects.insert((kind, id.to_owned()), object);
    }

    /// An object that is there, for one task alone until it is given back.
    pub(crate) fn take(&self, kind: Kind, random: &mut Random) -> Option<(String, Object)> {
        let mut inner = self.lock();
        let is_free = |((of, _), object): &(&(Kind, String), &mut Object)| {
            *of == kind && !object.is_taken && object.fate != Fate::Deleted
        };
        let mut free: Vec<_> = inner.objects.iter_mut().filter(is_free).collect();
        let index = random.below(free.len().max(1) as u64) as usize;
        let (key, object) = free.get_mut(index)?;
        object.is_taken = true;
        Some((key.1.clone(), object.clone()))
    }

    pub(crate) fn give_back(&self, kind: Kind, id: String, object: Object) {
        self.lock().objects.insert((kind, id), Object { is_taken: false, ..object });
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        let inner = self.lock();
        let there = inner.objects.iter().filter(|((of, _), _)| *of == kind);
        there.filter(|(_, object)| object.fate == Fate::There).count()
    }

    pub(crate) fn all(&self) -> Objects {
        self.lock().objects.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody panics with it")
    }
}
