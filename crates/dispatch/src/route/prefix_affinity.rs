//! The provider that has the beginning of the prompt in its cache.

use std::{cmp::Reverse, collections::BTreeMap};

use base::{ModelName, ProviderId};

use crate::{
    input::JobSpec,
    route::{Candidate, Known, LeastLoaded, Policy},
};

/// How many providers are remembered for a head: those that served it last.
const HOLDERS: usize = 4;

/// How many more bytes of the prompt a provider must know for each job that it has more than the
/// least loaded one.
const BYTES_PER_JOB: u64 = 8 * 1024;

/// Sends conversations to the provider whose cache is warm for them.
///
/// It remembers which providers last served each head of a prompt ([`Affinity`](crate::Affinity)),
/// for each model. Of the candidates that know a head of the job, it takes the one with the
/// greatest gain: the bytes that the candidate knows, less 8 KiB for each job that it has more than
/// the least loaded one. If no candidate has a gain, the least loaded one gets the job. A candidate
/// never gets the job if its load is above the least load by more than 2, or by a quarter of its
/// capacity if that is more.
///
/// The memory holds a fixed number of heads; the least recently used ones are forgotten first. A
/// provider that left is not among the candidates, and a new one has no heads.
#[derive(Debug)]
pub struct PrefixAffinity {
    capacity: usize,
    by_hash: BTreeMap<u64, Holders>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

/// The providers that have served a head: the last first.
#[derive(Debug, Clone, Copy)]
struct Holders {
    providers: [Option<ProviderId>; HOLDERS],
    used: u64,
}

impl PrefixAffinity {
    /// The number of heads that [`PrefixAffinity::default`] remembers: at most 10 MiB.
    pub const DEFAULT_CAPACITY: usize = 65_536;

    /// A memory of at most `capacity` heads; 0 counts as 1.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { capacity, by_hash: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// The number of remembered heads.
    pub fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    fn remember(&mut self, hash: u64, provider: ProviderId) {
        let used = self.uses + 1;
        let new = Holders { providers: [None; HOLDERS], used };
        let holders = self.by_hash.entry(hash).or_insert(new);
        // Also for a head that was used just now: its holders change with each job.
        holders.served_by(provider);
        // Fewer heads than half of the memory were used since, so this one is not forgotten soon,
        // and `by_use` need not change.
        let is_recent = used - holders.used <= self.capacity as u64 / 2 && holders.used < used;
        if is_recent {
            return;
        }
        self.by_use.remove(&holders.used);
        holders.used = used;
        self.uses = used;
        self.by_use.insert(used, hash);
        if self.by_hash.len() > self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_hash.remove(&oldest);
        }
    }
}

impl Default for PrefixAffinity {
    fn default() -> Self {
        Self::new(Self::DEFAULT_CAPACITY)
    }
}

impl Policy for PrefixAffinity {
    /// O(heads × log + candidates).
    fn choose(&mut self, job: &JobSpec, candidates: &[Candidate]) -> usize {
        // With one candidate there is nothing to choose, and looking up heads takes time.
        if candidates.len() < 2 {
            return 0;
        }
        let least = candidates.iter().map(|candidate| candidate.load).min().unwrap_or_default();
        let warm = self.known(job, &job.model).iter().filter_map(|(provider, bytes)| {
            let is_it = |candidate: &Candidate| candidate.provider == provider;
            let position = candidates.iter().position(is_it)?;
            let candidate = candidates.get(position)?;
            // Among equal gains the candidate that has gone longest without a job, as
            // [`LeastLoaded`] does.
            Some((gain(candidate, bytes, least)?, Reverse(candidate.last_given), position))
        });
        let best = warm.max().map(|(.., position)| position);
        best.unwrap_or_else(|| LeastLoaded.choose(job, candidates))
    }

    /// O(heads × log).
    fn known(&self, job: &JobSpec, model: &ModelName) -> Known {
        let (seed, mut known) = (seed(model), Known::default());
        for head in job.affinity.heads() {
            let holders = self.by_hash.get(&(head.hash ^ seed));
            let mut providers = holders.iter().flat_map(|it| it.providers.iter().flatten());
            if !providers.all(|provider| known.note(*provider, head.length)) {
                break;
            }
        }
        known
    }

    fn placed(&mut self, job: &JobSpec, provider: ProviderId) {
        let seed = seed(&job.model);
        // Only the heads that a longer prompt most likely has, too.
        for head in job.affinity.round_heads() {
            self.remember(head.hash ^ seed, provider);
        }
    }
}

impl Holders {
    /// Puts a provider before the others. The last of the others is forgotten if they are too many.
    fn served_by(&mut self, provider: ProviderId) {
        let was = self.providers.iter().position(|holder| *holder == Some(provider));
        let end = was.unwrap_or(HOLDERS - 1);
        self.providers[..=end].rotate_right(1);
        self.providers[0] = Some(provider);
    }
}

/// The gain of a job at a candidate that knows `known` bytes of it; `None` if it gains nothing, or the candidate's load
/// is too high.
fn gain(candidate: &Candidate, known: u32, least: u32) -> Option<u64> {
    let more = candidate.load - least;
    let is_within = more <= (candidate.capacity / 4).max(2);
    let gain = u64::from(known).checked_sub(u64::from(more) * BYTES_PER_JOB)?;
    (is_within && gain > 0).then_some(gain)
}

/// Tells models apart: a cache for one is of no use for another.
fn seed(model: &ModelName) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    model.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        affinity::Affinity,
        fixture::{candidate, provider, spec},
    };

    const JOB: usize = BYTES_PER_JOB as usize;

    fn job(prompt: &[u8]) -> JobSpec {
        JobSpec { affinity: Affinity::of(&[], prompt), ..spec(1) }
    }

    /// A prompt of its own kind.
    fn prompt(kind: u32, length: usize) -> Vec<u8> {
        kind.to_le_bytes().into_iter().cycle().take(length).collect()
    }

    fn candidates(loads: [u32; 2], capacity: u32) -> [Candidate; 2] {
        let one = |number, load| Candidate { load, capacity, ..candidate(number) };
        [one(1, loads[0]), one(2, loads[1])]
    }

    #[test]
    fn a_conversation_stays_and_one_that_shares_nothing_goes_to_the_least_loaded() {
        let mut policy = PrefixAffinity::default();
        policy.placed(&job(&prompt(7, 3_000)), provider(2));
        let longer = [prompt(7, 2_900), prompt(8, 1_000)].concat();
        assert_eq!(policy.choose(&job(&longer), &candidates([0, 0], 4)), 1);
        assert_eq!(policy.choose(&job(&prompt(8, 3_000)), &candidates([0, 0], 4)), 0);
        assert_eq!(policy.choose(&job(b"\"short\""), &candidates([1, 0], 4)), 1);
    }

    #[test]
    fn the_provider_that_knows_more_comes_first() {
        let mut policy = PrefixAffinity::default();
        let (short, long) = (prompt(7, 2_000), prompt(7, 9_000));
        policy.placed(&job(&long), provider(2));
        policy.placed(&job(&short), provider(1));
        assert_eq!(policy.choose(&job(&long), &candidates([0, 0], 4)), 1);
        assert_eq!(
            policy.choose(&job(&long), &candidates([0, 1], 4)),
            0,
            "2 kB are not worth a job"
        );
    }

    #[test]
    fn of_those_that_know_as_much_the_one_goes_first_that_has_waited_longest() {
        let mut policy = PrefixAffinity::default();
        for number in [1, 2] {
            policy.placed(&job(&prompt(7, 5_000)), provider(number));
        }
        let mut both = candidates([0, 0], 4);
        both[0].last_given = 9;
        assert_eq!(policy.choose(&job(&prompt(7, 5_000)), &both), 1);
        both[1].last_given = 10;
        assert_eq!(policy.choose(&job(&prompt(7, 5_000)), &both), 0);
    }

    #[test]
    fn a_long_prompt_is_worth_more_load_than_a_short_one_but_not_any() {
        let mut policy = PrefixAffinity::default();
        let (short, long) = (prompt(7, JOB), prompt(8, 9 * JOB));
        policy.placed(&job(&short), provider(2));
        policy.placed(&job(&long), provider(2));
        let chosen = |prompt: &[u8], load, capacity| {
            PrefixAffinity::choose(&mut policy, &job(prompt), &candidates([0, load], capacity))
        };
        let mut chosen = chosen;
        assert_eq!(chosen(&short, 0, 4), 1);
        assert_eq!(chosen(&short, 1, 4), 0);
        assert_eq!(chosen(&long, 2, 4), 1);
        assert_eq!(chosen(&long, 3, 4), 0, "the guard");
        assert_eq!(chosen(&long, 5, 20), 1, "a quarter of 20");
        assert_eq!(chosen(&long, 6, 20), 0);
    }

    #[test]
    fn a_cache_for_one_model_is_none_for_another() {
        let mut policy = PrefixAffinity::default();
        policy.placed(&job(&prompt(7, 3_000)), provider(2));
        let other = JobSpec { model: "n".into(), ..job(&prompt(7, 3_000)) };
        assert_eq!(policy.choose(&other, &candidates([0, 0], 4)), 0);
    }

    #[test]
    fn a_provider_that_comes_is_cold_and_one_that_left_is_passed_over() {
        let mut policy = PrefixAffinity::default();
        policy.placed(&job(&prompt(7, 5_000)), provider(3));
        assert_eq!(policy.choose(&job(&prompt(7, 5_000)), &candidates([1, 0], 4)), 1);
        policy.placed(&job(&prompt(7, 5_000)), provider(1));
        assert_eq!(policy.choose(&job(&prompt(7, 5_000)), &candidates([0, 0], 4)), 0);
        for gone in 10..20 {
            policy.placed(&job(&prompt(7, 5_000)), provider(gone));
        }
        assert_eq!(policy.choose(&job(&prompt(7, 5_000)), &candidates([1, 0], 4)), 1, "forgotten");
    }

    #[test]
    fn the_memory_is_bounded_and_forgets_the_longest_unused() {
        let mut policy = PrefixAffinity::new(100);
        for kind in 1..=100 {
            policy.placed(&job(&prompt(kind, 257)), provider(2));
        }
        policy.placed(&job(&prompt(1, 257)), provider(2));
        for kind in 101..=150 {
            policy.placed(&job(&prompt(kind, 257)), provider(2));
        }
        assert_eq!((policy.len(), policy.by_use.len()), (100, 100));
        let free = candidates([0, 0], 4);
        assert_eq!(policy.choose(&job(&prompt(1, 257)), &free), 1, "used again");
        assert_eq!(policy.choose(&job(&prompt(2, 257)), &free), 0, "forgotten");
    }

    proptest! {
        /// Whatever was placed: no candidate beyond the guard is chosen for its cache, the memory keeps its bound, and
        /// a job whose prompt nobody has had goes where it would go without a memory.
        #[test]
        fn nobody_loses(
            placed in prop::collection::vec((0u32..12, 200usize..6_000, 1u64..9), 0..200),
            loads in prop::collection::vec((1u64..9, 0u32..16), 1..8),
            asked in (0u32..14, 200usize..6_000),
        ) {
            let mut policy = PrefixAffinity::new(64);
            for (kind, length, to) in placed {
                policy.placed(&job(&prompt(kind, length)), provider(to));
                prop_assert!(policy.len() <= 64 && policy.len() == policy.by_use.len());
            }
            let loads: BTreeMap<_, _> = loads.into_iter().collect();
            let all: Vec<_> = loads
                .iter()
                .map(|(number, load)| Candidate { load: *load, capacity: 16, ..candidate(*number) })
                .collect();
            let least = all.iter().map(|it| it.load).min().unwrap();
            let job = job(&prompt(asked.0, asked.1));
            let chosen = policy.choose(&job, &all);
            prop_assert!(all[chosen].load <= least + 4);
            if asked.0 > 11 {
                prop_assert_eq!(chosen, LeastLoaded.choose(&job, &all));
            }
        }
    }
}
