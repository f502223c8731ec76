//! The failures, and how often each came.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failures(BTreeMap<String, u64>);

impl Failures {
    /// Kinds told apart; any further kind is counted as `other`.
    const KINDS: usize = 16;

    pub(crate) fn add(&mut self, what: &str) {
        self.add_many(what, 1);
    }

    pub(crate) fn add_many(&mut self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        let known = self.0.contains_key(what) || self.0.len() < Self::KINDS;
        let kind = if known { what } else { "other" };
        *self.0.entry(kind.to_owned()).or_default() += count;
    }

    pub(crate) fn merge(&mut self, others: &Self) {
        for (what, &count) in &others.0 {
            self.add_many(what, count);
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(what, &count)| (what.as_str(), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_failures_are_bounded() {
        let mut failures = Failures::default();
        for i in 0..100 {
            failures.add(&format!("kind {i}"));
        }
        assert_eq!(failures.iter().count(), Failures::KINDS + 1);
        assert_eq!(failures.total(), 100);
    }
}
