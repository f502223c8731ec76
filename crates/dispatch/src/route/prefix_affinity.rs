//! The provider that has the beginning of the prompt in its cache.

use std::collections::BTreeMap;

use base::ProviderId;

use crate::{
    input::JobSpec,
    route::{Candidate, LeastLoaded, Policy},
};

/// Sends conversations to the provider whose cache is warm for them.
///
/// It remembers which provider last served each head of a prompt ([`Affinity`](crate::Affinity))
/// and sends a job to the provider that shares the longest head with it. That provider's load must
/// be at most the least load among the candidates plus 2, or plus a quarter of its capacity if that
/// is more. Otherwise the least loaded one gets the job, and is remembered from then on. The memory
/// holds a fixed number of heads; the least recently used goes first.
#[derive(Debug)]
pub struct PrefixAffinity {
    capacity: usize,
    last_uses: BTreeMap<u64, LastUse>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct LastUse {
    provider: ProviderId,
    used: u64,
}

impl PrefixAffinity {
    /// The number of heads that [`PrefixAffinity::default`] remembers: a few MiB.
    pub const DEFAULT_CAPACITY: usize = 65_536;

    /// A memory of at most `capacity` heads; 0 counts as 1.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { capacity, last_uses: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// The number of remembered heads.
    pub fn len(&self) -> usize {
        self.last_uses.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.last_uses.is_empty()
    }

    fn warm(&self, job: &JobSpec, candidates: &[Candidate]) -> Option<usize> {
        let least = candidates.iter().map(|candidate| candidate.load).min()?;
        job.affinity.longest_first().find_map(|head| {
            let place = self.last_uses.get(&head)?;
            let known = |candidate: &Candidate| candidate.provider == place.provider;
            let position = candidates.iter().position(known)?;
            within_guard(candidates.get(position)?, least).then_some(position)
        })
    }

    fn remember(&mut self, head: u64, provider: ProviderId) {
        self.uses += 1;
        if let Some(old) = self.last_uses.insert(head, LastUse { provider, used: self.uses }) {
            self.by_use.remove(&old.used);
        }
        self.by_use.insert(self.uses, head);
        if self.last_uses.len() > self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.last_uses.remove(&oldest);
        }
    }
}

impl Default for PrefixAffinity {
    fn default() -> Self {
        Self::new(Self::DEFAULT_CAPACITY)
    }
}

impl Policy for PrefixAffinity {
    fn choose(&mut self, job: &JobSpec, candidates: &[Candidate]) -> usize {
        self.warm(job, candidates).unwrap_or_else(|| LeastLoaded.choose(job, candidates))
    }

    fn placed(&mut self, job: &JobSpec, provider: ProviderId) {
        for head in job.affinity.longest_first() {
            self.remember(head, provider);
        }
    }
}

fn within_guard(warm: &Candidate, least: u32) -> bool {
    warm.load <= least.saturating_add((warm.capacity / 4).max(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixture::{candidate, provider, spec},
        input::Affinity,
    };

    fn with_heads(heads: [u64; 4]) -> JobSpec {
        JobSpec { affinity: Affinity { heads }, ..spec(1) }
    }

    fn candidates(loads: [u32; 2], capacity: u32) -> [Candidate; 2] {
        let one = |number, load| Candidate { load, capacity, ..candidate(number) };
        [one(1, loads[0]), one(2, loads[1])]
    }

    #[test]
    fn follows_the_longest_known_head() {
        let mut policy = PrefixAffinity::default();
        policy.placed(&with_heads([7, 8, 9, 0]), provider(2));
        policy.placed(&with_heads([7, 0, 0, 0]), provider(1));
        let free = candidates([0, 0], 4);
        assert_eq!(policy.choose(&with_heads([7, 8, 10, 11]), &free), 1);
        assert_eq!(policy.choose(&with_heads([7, 12, 0, 0]), &free), 0);
    }

    #[test]
    fn falls_back_on_a_shorter_head_when_the_warmest_is_busy() {
        let mut policy = PrefixAffinity::default();
        policy.placed(&with_heads([7, 8, 0, 0]), provider(3));
        policy.placed(&with_heads([7, 0, 0, 0]), provider(2));
        assert_eq!(policy.choose(&with_heads([7, 8, 0, 0]), &candidates([0, 0], 4)), 1);
    }

    #[test]
    fn the_guard_sends_work_away_and_remembers_the_new_place() {
        let mut policy = PrefixAffinity::default();
        let job = with_heads([7, 0, 0, 0]);
        policy.placed(&job, provider(2));
        assert_eq!(policy.choose(&job, &candidates([0, 2], 4)), 1);
        assert_eq!(policy.choose(&job, &candidates([0, 3], 4)), 0);
        assert_eq!(policy.choose(&job, &candidates([0, 5], 20)), 1, "a quarter of 20");
        policy.placed(&job, provider(1));
        assert_eq!(policy.choose(&job, &candidates([1, 0], 4)), 0);
    }

    #[test]
    fn the_memory_is_bounded_and_forgets_the_longest_unused() {
        let mut policy = PrefixAffinity::new(100);
        for head in 1..=100 {
            policy.placed(&with_heads([head, 0, 0, 0]), provider(2));
        }
        policy.placed(&with_heads([1, 0, 0, 0]), provider(2));
        for head in 101..=150 {
            policy.placed(&with_heads([head, 0, 0, 0]), provider(2));
        }
        assert_eq!((policy.len(), policy.by_use.len()), (100, 100));
        let loads = candidates([0, 1], 4);
        assert_eq!(policy.choose(&with_heads([1, 0, 0, 0]), &loads), 1, "used again");
        assert_eq!(policy.choose(&with_heads([2, 0, 0, 0]), &loads), 0, "forgotten");
    }
}
