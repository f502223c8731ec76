//! Jobs that wait for the same providers, in the order in which they are served.

use std::collections::BTreeMap;

use base::{JobId, KeyId};

/// The requeued jobs first, oldest first; then one job of each key in turn, each key's in the
/// order of acceptance. Jobs are found again by their place in that order (`seq`).
#[derive(Debug, Default)]
pub(crate) struct Line {
    requeued: BTreeMap<u64, JobId>,
    lanes: BTreeMap<KeyId, Lane>,
    /// Whose turn it is, the next first.
    turns: BTreeMap<u64, KeyId>,
    last_turn: u64,
}

#[derive(Debug, Default)]
struct Lane {
    turn: u64,
    jobs: BTreeMap<u64, JobId>,
}

impl Line {
    /// Adds a job behind those of its key.
    pub(crate) fn push(&mut self, seq: u64, job: JobId, key: &KeyId) {
        let new = !self.lanes.contains_key(key);
        self.lanes.entry(key.clone()).or_default().jobs.insert(seq, job);
        if new {
            self.move_back(key);
        }
    }

    /// Adds a job before all that were not requeued.
    pub(crate) fn push_requeued(&mut self, seq: u64, job: JobId) {
        self.requeued.insert(seq, job);
    }

    /// Takes a job out that is not served. Its key keeps its turn.
    pub(crate) fn remove(&mut self, seq: u64, key: &KeyId) {
        if self.requeued.remove(&seq).is_some() {
            return;
        }
        let Some(lane) = self.lanes.get_mut(key) else { return };
        lane.jobs.remove(&seq);
        if lane.jobs.is_empty() {
            self.turns.remove(&lane.turn);
            self.lanes.remove(key);
        }
    }

    /// Takes a job out to be served. Its key has had its turn, unless it had been requeued.
    pub(crate) fn serve(&mut self, seq: u64, key: &KeyId) {
        let requeued = self.requeued.contains_key(&seq);
        self.remove(seq, key);
        if !requeued {
            self.move_back(key);
        }
    }

    /// The `seq` of the job that is next.
    pub(crate) fn head(&self) -> Option<u64> {
        let requeued = self.requeued.keys().next();
        let in_turn = || self.lanes_in_turn().find_map(|lane| lane.jobs.keys().next());
        requeued.or_else(in_turn).copied()
    }

    /// The requeued jobs, oldest first.
    pub(crate) fn requeued(&self) -> impl Iterator<Item = JobId> {
        self.requeued.values().copied()
    }

    /// All jobs, in the order in which they are offered: if the first of a key does not fit, the
    /// next of the same key is tried before another key's.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = JobId> {
        self.requeued().chain(self.lanes_in_turn().flat_map(|lane| lane.jobs.values().copied()))
    }

    /// The smallest `seq` in the line: its oldest job's.
    pub(crate) fn oldest(&self) -> Option<(u64, JobId)> {
        let firsts = self.lanes.values().filter_map(|lane| lane.jobs.first_key_value());
        firsts.chain(self.requeued.first_key_value()).map(|(seq, job)| (*seq, *job)).min()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requeued.is_empty() && self.lanes.is_empty()
    }

    fn lanes_in_turn(&self) -> impl Iterator<Item = &Lane> {
        self.turns.values().filter_map(|key| self.lanes.get(key))
    }

    fn move_back(&mut self, key: &KeyId) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        self.turns.remove(&lane.turn);
        self.last_turn += 1;
        lane.turn = self.last_turn;
        self.turns.insert(lane.turn, key.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(jobs: &[(u64, &str)]) -> Line {
        let mut line = Line::default();
        for (seq, key) in jobs {
            line.push(*seq, JobId::from_random(u128::from(*seq)), &KeyId::from(*key));
        }
        line
    }

    fn serve_all(line: &mut Line, keys: &BTreeMap<u64, &str>) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some(seq) = line.head() {
            line.serve(seq, &KeyId::from(keys[&seq]));
            order.push(seq);
        }
        order
    }

    #[test]
    fn keys_take_turns_and_keep_their_order() {
        let jobs = [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "b"), (6, "c")];
        let mut line = line(&jobs);
        assert_eq!(serve_all(&mut line, &BTreeMap::from(jobs)), [1, 4, 6, 2, 5, 3]);
        assert!(line.is_empty() && line.turns.is_empty());
    }

    #[test]
    fn requeued_jobs_come_first_oldest_first() {
        let jobs = [(3, "a"), (4, "b")];
        let mut line = line(&jobs);
        line.push_requeued(2, JobId::from_random(2));
        line.push_requeued(1, JobId::from_random(1));
        assert_eq!(line.oldest().map(|(seq, _)| seq), Some(1));
        let keys = BTreeMap::from([(1, "a"), (2, "a"), (3, "a"), (4, "b")]);
        assert_eq!(serve_all(&mut line, &keys), [1, 2, 3, 4]);
    }

    #[test]
    fn a_job_that_leaves_does_not_cost_its_key_the_turn() {
        let jobs = [(1, "a"), (2, "a"), (3, "b")];
        let mut line = line(&jobs);
        line.remove(1, &KeyId::from("a"));
        assert_eq!(serve_all(&mut line, &BTreeMap::from(jobs)), [2, 3]);
    }
}
