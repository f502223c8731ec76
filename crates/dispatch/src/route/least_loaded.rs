//! The provider with the smallest share of its capacity in use.

use std::cmp::Ordering;

use crate::{
    input::JobSpec,
    route::{Candidate, Policy},
};

/// Chooses the provider with the smallest share of its capacity in use. Among equals it takes the
/// one that has gone longest without a job, so that single requests rotate too.
#[derive(Debug, Default, Clone, Copy)]
pub struct LeastLoaded;

impl Policy for LeastLoaded {
    fn choose(&mut self, _job: &JobSpec, candidates: &[Candidate]) -> usize {
        let order = |a: &(usize, &Candidate), b: &(usize, &Candidate)| compare(a.1, b.1);
        candidates.iter().enumerate().min_by(order).map_or(0, |(position, _)| position)
    }
}

fn compare(a: &Candidate, b: &Candidate) -> Ordering {
    // Compares a.load / a.capacity with b.load / b.capacity without dividing.
    let share = |of: &Candidate, other: &Candidate| u64::from(of.load) * u64::from(other.capacity);
    let by_share = share(a, b).cmp(&share(b, a));
    by_share.then(a.last_given.cmp(&b.last_given)).then(a.provider.cmp(&b.provider))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, spec};

    fn candidate(number: u64, load: u32, capacity: u32, last_given: u64) -> Candidate {
        Candidate { load, capacity, last_given, ..fixture::candidate(number) }
    }

    #[test]
    fn takes_the_smallest_share() {
        let candidates =
            [candidate(1, 1, 2, 0), candidate(2, 3, 8, 0), candidate(3, u32::MAX - 1, u32::MAX, 0)];
        assert_eq!(LeastLoaded.choose(&spec(1), &candidates), 1);
    }

    #[test]
    fn equals_take_turns() {
        let mut candidates = [1, 2, 3].map(|number| candidate(number, 0, 1, 0));
        let mut chosen = Vec::new();
        for turn in 1..=6 {
            let position = LeastLoaded.choose(&spec(1), &candidates);
            candidates[position].last_given = turn;
            chosen.push(position);
        }
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
    }
}
