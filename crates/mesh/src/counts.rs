//! The counts of a node beside its links: messages that made no sense, and problems that a person has to solve.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// The most kinds of bad messages that are counted apart.
const MAX_KINDS: usize = 32;

#[derive(Default)]
pub(crate) struct Counts {
    bad: Mutex<BTreeMap<String, u64>>,
    problems: Mutex<BTreeMap<String, u64>>,
}

impl Counts {
    /// A message that was not understood, of this kind.
    pub(crate) fn bad(&self, kind: &str) {
        let mut bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = if bad.len() < MAX_KINDS || bad.contains_key(kind) { kind } else { "other" };
        *bad.entry(kind.to_owned()).or_default() += 1;
    }

    /// Messages that were not understood, by kind.
    pub(crate) fn bad_by_kind(&self) -> BTreeMap<String, u64> {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something that somebody has to put right, in words for people: how often it was met is counted.
    pub(crate) fn problem(&self, what: &str) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.len() < MAX_KINDS || problems.contains_key(what) {
            *problems.entry(what.to_owned()).or_default() += 1;
        }
    }

    /// Problems that a person has to solve, with how often each was met.
    pub(crate) fn problems(&self) -> BTreeMap<String, u64> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
