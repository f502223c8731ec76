//! Jobs that wait for the same providers, in the order of service.

use std::{collections::BTreeMap, iter};

use base::{Endpoints, JobId, KeyId};

use crate::{
    distance::{Bound, Distance},
    input::JobSpec,
};

/// The most jobs, and the most keys, that are counted before a job. The positions of many jobs are
/// asked for at once, so each must be cheap.
pub(crate) const MOST_COUNTED: usize = 1_000;

/// The requeued jobs come first, the oldest of them before the others; then one job of each key in
/// turn, those of one key in the order of acceptance. Jobs are found again by their position in
/// that order (`seq`).
///
/// Jobs are separated by the shapes that they can be served in, and by how far they may go from
/// this server. So a provider that serves few shapes, or is far away, examines none of the jobs
/// that it cannot serve, even if many are ahead of those that it can: finding its first job costs
/// O(log n) for each kind of jobs in the line.
#[derive(Debug, Default)]
pub(crate) struct Line {
    kinds: BTreeMap<Kind, WaitingJobs>,
    turns: BTreeMap<KeyId, Turn>,
    last_turn: u64,
}

/// The properties that separate jobs for the providers that might take them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    shapes: Endpoints,
    bound: Bound,
}

/// The jobs that a provider might take: by the shapes that it serves, and by its distance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) endpoints: Endpoints,
    pub(crate) distance: Distance,
}

/// The jobs of the same kind.
#[derive(Debug, Default)]
struct WaitingJobs {
    requeued: BTreeMap<u64, JobId>,
    /// The jobs of each key, by the number of the key's turn.
    lanes: BTreeMap<u64, BTreeMap<u64, JobId>>,
}

/// The turn of a key: the smallest number is next.
#[derive(Debug)]
struct Turn {
    number: u64,
    /// The number of the key's jobs in lanes.
    jobs: usize,
}

impl Line {
    /// Adds a job behind those of its key.
    pub(crate) fn push(&mut self, seq: u64, spec: &JobSpec) {
        let number = self.join_turns(&spec.key);
        let waiting = self.kinds.entry(Kind::of(spec)).or_default();
        waiting.lanes.entry(number).or_default().insert(seq, spec.id);
    }

    /// Adds a job before all that were not requeued.
    pub(crate) fn push_requeued(&mut self, seq: u64, spec: &JobSpec) {
        self.kinds.entry(Kind::of(spec)).or_default().requeued.insert(seq, spec.id);
    }

    /// Removes a job without serving it. Its key keeps its turn.
    pub(crate) fn remove(&mut self, seq: u64, spec: &JobSpec) {
        self.take(seq, spec);
    }

    /// Removes a job to serve it. This uses up the turn of its key, unless the job had been
    /// requeued.
    pub(crate) fn serve(&mut self, seq: u64, spec: &JobSpec) {
        if self.take(seq, spec) {
            self.move_back(&spec.key);
        }
    }

    /// The `seq` of the next job.
    pub(crate) fn head(&self) -> Option<u64> {
        // Requeued jobs of every kind come before the turns of keys.
        let requeued = self.kinds.values().filter_map(|waiting| waiting.requeued.keys().next());
        let in_turn = || self.kinds.values().filter_map(WaitingJobs::first).min();
        requeued.min().copied().or_else(|| in_turn().map(|(_, seq)| seq))
    }

    /// The requeued jobs within this reach, oldest first.
    pub(crate) fn requeued(&self, there: Reach) -> impl Iterator<Item = JobId> {
        merged(self.meeting(there).map(|waiting| waiting.requeued.iter().map(owned)).collect())
    }

    /// All jobs within this reach, in the order in which they are offered: if the first of a key
    /// does not fit, the next of the same key is tried before another key's.
    pub(crate) fn in_order(&self, there: Reach) -> impl Iterator<Item = JobId> {
        let lanes = merged(self.meeting(there).map(WaitingJobs::in_turn).collect());
        self.requeued(there).chain(lanes)
    }

    /// All jobs, in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = JobId> {
        self.kinds.values().flat_map(|waiting| {
            let lanes = waiting.lanes.values().flat_map(BTreeMap::values);
            waiting.requeued.values().chain(lanes).copied()
        })
    }

    /// The number of jobs that are served before this one, if nothing changes, up to
    /// [`MOST_COUNTED`]. O(kinds + [`MOST_COUNTED`]).
    pub(crate) fn ahead(&self, seq: u64, spec: &JobSpec) -> usize {
        let before = |jobs: &BTreeMap<u64, JobId>| jobs.range(..seq).take(MOST_COUNTED).count();
        let waiting = || self.kinds.values();
        if waiting().any(|waiting| waiting.requeued.contains_key(&seq)) {
            let requeued: usize = waiting().map(|waiting| before(&waiting.requeued)).sum();
            return requeued.min(MOST_COUNTED);
        }
        let requeued: usize = waiting().map(|waiting| waiting.requeued.len()).sum();
        let Some(turn) = self.turns.get(&spec.key) else { return requeued.min(MOST_COUNTED) };
        let lanes = waiting().filter_map(|waiting| waiting.lanes.get(&turn.number));
        let rounds: usize = lanes.map(before).sum();
        let others = self.turns.values().filter(|other| other.number != turn.number);
        let in_turn = |it: &Turn| it.jobs.min(rounds + usize::from(it.number < turn.number));
        let others: usize = others.take(MOST_COUNTED).map(in_turn).sum();
        (requeued + rounds + others).min(MOST_COUNTED)
    }

    /// The smallest `seq` in the line: that of its oldest job.
    pub(crate) fn oldest(&self) -> Option<(u64, JobId)> {
        let firsts = self.kinds.values().flat_map(|waiting| {
            let lanes = waiting.lanes.values().filter_map(BTreeMap::first_key_value);
            lanes.chain(waiting.requeued.first_key_value())
        });
        firsts.map(owned).min()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    fn meeting(&self, there: Reach) -> impl Iterator<Item = &WaitingJobs> {
        let meeting = self.kinds.iter().filter(move |(kind, _)| kind.meets(there));
        meeting.map(|(_, waiting)| waiting)
    }

    /// Removes a job. Returns whether it stood in the lane of its key.
    fn take(&mut self, seq: u64, spec: &JobSpec) -> bool {
        let kind = Kind::of(spec);
        let Some(waiting) = self.kinds.get_mut(&kind) else { return false };
        let in_lane = match self.turns.get_mut(&spec.key) {
            // A requeued job has used its key's turn before.
            _ if waiting.requeued.remove(&seq).is_some() => false,
            Some(turn) => waiting.take(turn, seq),
            None => false,
        };
        if waiting.is_empty() {
            self.kinds.remove(&kind);
        }
        // Otherwise the turns of all keys that ever waited would be kept.
        if self.turns.get(&spec.key).is_some_and(|turn| turn.jobs == 0) {
            self.turns.remove(&spec.key);
        }
        in_lane
    }

    /// Counts a job of the key and returns the number of its turn; a new key comes last.
    fn join_turns(&mut self, key: &KeyId) -> u64 {
        if !self.turns.contains_key(key) {
            self.last_turn += 1;
            self.turns.insert(key.clone(), Turn { number: self.last_turn, jobs: 0 });
        }
        self.turns.get_mut(key).map_or(0, |turn| {
            turn.jobs += 1;
            turn.number
        })
    }

    fn move_back(&mut self, key: &KeyId) {
        let Some(turn) = self.turns.get_mut(key) else { return };
        self.last_turn += 1;
        let before = std::mem::replace(&mut turn.number, self.last_turn);
        // The lanes of a key share its turn, whatever their kind.
        for waiting in self.kinds.values_mut() {
            if let Some(lane) = waiting.lanes.remove(&before) {
                waiting.lanes.insert(self.last_turn, lane);
            }
        }
    }
}

impl Kind {
    fn of(spec: &JobSpec) -> Self {
        Self { shapes: spec.serve_as, bound: spec.route.bound() }
    }

    fn meets(self, there: Reach) -> bool {
        self.shapes.meets(there.endpoints) && self.bound.holds(there.distance)
    }
}

impl WaitingJobs {
    fn is_empty(&self) -> bool {
        self.requeued.is_empty() && self.lanes.is_empty()
    }

    /// Turn and `seq` of the first job in a lane.
    fn first(&self) -> Option<(u64, u64)> {
        let (turn, lane) = self.lanes.first_key_value()?;
        Some((*turn, *lane.keys().next()?))
    }

    /// The jobs in lanes, by turn and `seq`.
    fn in_turn(&self) -> impl Iterator<Item = ((u64, u64), JobId)> {
        self.lanes
            .iter()
            .flat_map(|(turn, lane)| lane.iter().map(move |(seq, job)| ((*turn, *seq), *job)))
    }

    /// Takes a job out of its key's lane, if it is there.
    fn take(&mut self, turn: &mut Turn, seq: u64) -> bool {
        let Some(lane) = self.lanes.get_mut(&turn.number) else { return false };
        let was_there = lane.remove(&seq).is_some();
        if lane.is_empty() {
            self.lanes.remove(&turn.number);
        }
        turn.jobs -= usize::from(was_there);
        was_there
    }
}

fn owned((seq, job): (&u64, &JobId)) -> (u64, JobId) {
    (*seq, *job)
}

/// Merges several sorted sequences. There are few of them: one for each kind.
fn merged<K: Ord, I>(orders: Vec<I>) -> impl Iterator<Item = JobId>
where
    I: Iterator<Item = (K, JobId)>,
{
    let mut orders: Vec<_> = orders.into_iter().map(Iterator::peekable).collect();
    iter::from_fn(move || {
        let heads = orders.iter_mut().enumerate();
        let first = heads.filter_map(|(at, order)| Some((&order.peek()?.0, at))).min()?.1;
        orders.get_mut(first)?.next().map(|(_, job)| job)
    })
}

#[cfg(test)]
mod tests {
    use base::Endpoint;

    use super::*;
    use crate::Route;
    use crate::fixture::spec;

    fn of_key(seq: u64, key: &str) -> JobSpec {
        JobSpec { key: key.into(), ..spec(u128::from(seq)) }
    }

    fn in_shape(seq: u64, key: &str, endpoint: Endpoint) -> JobSpec {
        JobSpec { serve_as: Endpoints::only(endpoint), ..of_key(seq, key) }
    }

    fn line(jobs: &[(u64, &str)]) -> Line {
        let mut line = Line::default();
        jobs.iter().for_each(|(seq, key)| line.push(*seq, &of_key(*seq, key)));
        line
    }

    fn serve_all(line: &mut Line, keys: &BTreeMap<u64, &str>) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some(seq) = line.head() {
            line.serve(seq, &of_key(seq, keys[&seq]));
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
        line.push_requeued(2, &of_key(2, "a"));
        line.push_requeued(1, &of_key(1, "a"));
        assert_eq!(line.oldest().map(|(seq, _)| seq), Some(1));
        let keys = BTreeMap::from([(1, "a"), (2, "a"), (3, "a"), (4, "b")]);
        assert_eq!(serve_all(&mut line, &keys), [1, 2, 3, 4]);
    }

    #[test]
    fn jobs_ahead_are_those_that_are_served_before() {
        let jobs = [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "b"), (6, "c")];
        let mut line = line(&jobs);
        line.push_requeued(0, &of_key(0, "c"));
        let order = [(0, "c"), (1, "a"), (4, "b"), (6, "c"), (2, "a"), (5, "b"), (3, "a")];
        for (ahead, (seq, key)) in order.into_iter().enumerate() {
            assert_eq!(line.ahead(seq, &of_key(seq, key)), ahead, "{seq}");
        }
        let many: Vec<_> = (7..3_000).map(|seq| (seq, "d")).collect();
        many.iter().for_each(|(seq, key)| line.push(*seq, &of_key(*seq, key)));
        assert_eq!(line.ahead(2_999, &of_key(2_999, "d")), MOST_COUNTED, "no more are counted");
    }

    #[test]
    fn a_job_that_leaves_does_not_cost_its_key_the_turn() {
        let jobs = [(1, "a"), (2, "a"), (3, "b")];
        let mut line = line(&jobs);
        line.remove(1, &of_key(1, "a"));
        assert_eq!(serve_all(&mut line, &BTreeMap::from(jobs)), [2, 3]);
    }

    #[test]
    fn a_local_job_is_not_offered_elsewhere() {
        let stays = JobSpec { route: Route::LocalOnly, ..of_key(1, "a") };
        let goes = JobSpec { route: Route::Mesh, ..of_key(2, "a") };
        let mut line = Line::default();
        line.push(1, &stays);
        line.push(2, &goes);
        line.push_requeued(0, &JobSpec { route: Route::LocalOnly, ..of_key(0, "a") });
        let offered = |distance| {
            let reach = Reach { endpoints: Endpoints::ASSUMED, distance };
            line.in_order(reach).collect::<Vec<_>>()
        };
        assert_eq!(offered(Distance::Here), [0, 1, 2].map(|seq| spec(seq).id));
        assert_eq!(offered(Distance::Near), [goes.id]);
        assert_eq!(offered(Distance::Far), [goes.id]);
    }

    #[test]
    fn shapes_are_offered_in_one_order_to_who_serves_them() {
        use Endpoint::{ChatCompletions as Chat, Messages};
        let mut line = Line::default();
        let jobs = [(2, "a", Messages), (3, "a", Chat), (4, "b", Messages), (5, "b", Chat)];
        jobs.iter().for_each(|(seq, key, shape)| line.push(*seq, &in_shape(*seq, key, *shape)));
        line.push_requeued(1, &in_shape(1, "c", Chat));
        line.push_requeued(0, &in_shape(0, "c", Messages));
        let offered = |line: &Line, shapes: Endpoints| -> Vec<u64> {
            let ids = BTreeMap::from_iter((0..9).map(|seq| (spec(u128::from(seq)).id, seq)));
            let here = Reach { endpoints: shapes, distance: Distance::Here };
            line.in_order(here).map(|job| ids[&job]).collect()
        };
        let (chat, both) = (Endpoints::only(Chat), Endpoints::only(Chat).with(Messages));
        assert_eq!(offered(&line, both), [0, 1, 2, 3, 4, 5]);
        assert_eq!(offered(&line, chat), [1, 3, 5]);
        assert_eq!(offered(&line, Endpoints::only(Endpoint::Embeddings)), []);
        line.serve(3, &in_shape(3, "a", Chat));
        assert_eq!(offered(&line, both), [0, 1, 4, 5, 2], "in whatever shape, a has had its turn");
        assert_eq!(line.head(), Some(0));
    }
}
