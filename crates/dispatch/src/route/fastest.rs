//! Narrows several peers down to those worth choosing among: the fastest, and the nearest of these.

use crate::{distance::Distance, route::Candidate};

/// A provider with at least this speed, in tenths of the best, counts as equally fast.
const AS_FAST: u64 = 8;

/// Narrows candidates down as soon as one of them is another machine. Between providers of the fleet
/// ([`Distance::Here`], [`Distance::Fellow`]) speed decides nothing: the policy alone chooses among the nearest.
///
/// **Fast** means a provider's speed at its throttle. Those that are nearly as fast as the fastest
/// stay, and of these the nearest.
///
/// **New providers.** A provider without a known speed that never had a job comes first, for one
/// job. If its answer was too short to measure, that does not count against it: it stays among the
/// candidates while it has no job from here.
///
/// **Slow providers.** A first answer may have been slow because a model had to be loaded. So a
/// fixed share of the choices that leave out a provider goes to the left-out provider that has gone
/// longest without a job. All slow peers together get only this share, however many there are.
#[derive(Debug, Default)]
pub(crate) struct Fastest {
    /// The number of choices that left out a provider since the last retry of one.
    left_out: u32,
}

impl Fastest {
    /// Narrows the candidates for a job that is assigned to one of them at once. Each
    /// `try_every`-th choice that leaves out a provider goes to one that was left out; 0 for never.
    /// O(candidates).
    pub(crate) fn narrow(&mut self, candidates: &mut Vec<Candidate>, try_every: u32) {
        let farthest = candidates.iter().map(|candidate| candidate.distance).max();
        if candidates.len() < 2 || farthest == Some(Distance::Here) {
            return;
        }
        if farthest == Some(Distance::Fellow) {
            return keep_nearest(candidates);
        }
        // A provider that is never chosen is never measured, so new ones come first.
        if candidates.iter().any(is_unseen) {
            candidates.retain(is_unseen);
        } else {
            self.keep_fast(candidates, try_every);
        }
        keep_nearest(candidates);
    }

    fn keep_fast(&mut self, candidates: &mut Vec<Candidate>, try_every: u32) {
        let fastest = candidates.iter().filter_map(pace).max();
        let out = candidates.iter().filter(|candidate| !is_fast(candidate, fastest));
        let longest = out.min_by_key(|candidate| (candidate.last_given, candidate.provider));
        match longest.map(|candidate| candidate.provider) {
            Some(longest) if self.count_left_out(try_every) => {
                candidates.retain(|candidate| candidate.provider == longest);
            }
            _ => candidates.retain(|candidate| is_fast(candidate, fastest)),
        }
    }

    /// Counts a choice that leaves out a provider. Returns whether it is time to retry one.
    fn count_left_out(&mut self, try_every: u32) -> bool {
        if try_every == 0 {
            return false;
        }
        self.left_out += 1;
        let time = self.left_out >= try_every;
        if time {
            self.left_out = 0;
        }
        time
    }
}

/// Its speed, reduced by its throttle.
fn pace(candidate: &Candidate) -> Option<u64> {
    candidate.speed.map(|speed| u64::from(speed) * u64::from(candidate.throttle))
}

fn is_unseen(candidate: &Candidate) -> bool {
    candidate.speed.is_none() && candidate.last_given == 0
}

/// Whether it is nearly as fast as the fastest, as far as is known.
fn is_fast(candidate: &Candidate, fastest: Option<u64>) -> bool {
    match (pace(candidate), fastest) {
        (Some(pace), Some(fastest)) => pace * 10 >= fastest * AS_FAST,
        // This provider's answers were too short to measure, which does not count against it.
        (None, Some(_)) => candidate.held == 0,
        (_, None) => true,
    }
}

fn keep_nearest(candidates: &mut Vec<Candidate>) {
    if let Some(nearest) = candidates.iter().map(|candidate| candidate.distance).min() {
        candidates.retain(|candidate| candidate.distance == nearest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::candidate;

    const HERE: Distance = Distance::Here;
    const NEAR: Distance = Distance::Near;
    const FAR: Distance = Distance::Far;

    /// It has had a job, and is this fast.
    fn peer(number: u64, distance: Distance, speed: Option<u32>) -> Candidate {
        Candidate { distance, speed, last_given: number, ..candidate(number) }
    }

    fn left(fastest: &mut Fastest, candidates: &[Candidate], try_every: u32) -> Vec<u64> {
        let mut left = candidates.to_vec();
        fastest.narrow(&mut left, try_every);
        let numbers = |one: &Candidate| {
            let same = |other: &&Candidate| other.provider == one.provider;
            candidates.iter().find(same).map(|it| it.last_given)
        };
        left.iter().filter_map(numbers).collect()
    }

    fn remaining(candidates: &[Candidate]) -> Vec<u64> {
        left(&mut Fastest::default(), candidates, 0)
    }

    #[test]
    fn providers_that_are_all_here_are_left_as_they_are() {
        let all = [peer(1, HERE, Some(1)), peer(2, HERE, Some(1_000)), peer(3, HERE, None)];
        assert_eq!(remaining(&all), [1, 2, 3]);
    }

    #[test]
    fn a_provider_with_eight_tenths_of_the_best_speed_stays() {
        let all = [(1, 1_000), (2, 800), (3, 799)];
        assert_eq!(remaining(&all.map(|(number, speed)| peer(number, NEAR, Some(speed)))), [1, 2]);
    }

    #[test]
    fn a_throttle_counts_as_so_much_less_speed() {
        let throttled = Candidate { throttle: 50, ..peer(1, NEAR, Some(1_000)) };
        assert_eq!(remaining(&[throttled, peer(2, NEAR, Some(700))]), [2]);
        assert_eq!(remaining(&[throttled, peer(2, NEAR, Some(400))]), [1, 2]);
    }

    #[test]
    fn among_fast_providers_the_nearest_stay() {
        let slow = peer(1, HERE, Some(100));
        let fast = [peer(2, FAR, Some(1_000)), peer(3, NEAR, Some(900)), peer(4, NEAR, Some(850))];
        assert_eq!(remaining(&[slow, fast[0], fast[1], fast[2]]), [3, 4]);
        assert_eq!(remaining(&[slow, fast[0]]), [2]);
    }

    #[test]
    fn unmeasured_providers_come_first_the_nearest_of_them() {
        let unseen = |number, distance| Candidate { last_given: 0, ..peer(number, distance, None) };
        let mut all = vec![peer(1, HERE, Some(9_000)), unseen(2, FAR), unseen(3, NEAR)];
        Fastest::default().narrow(&mut all, 0);
        assert_eq!(all, [unseen(3, NEAR)]);
    }

    #[test]
    fn a_provider_with_a_reported_speed_counts_as_measured() {
        let unused = Candidate { last_given: 0, ..peer(2, NEAR, Some(100)) };
        assert_eq!(remaining(&[peer(1, NEAR, Some(1_000)), unused]), [1]);
    }

    #[test]
    fn an_unmeasured_peer_stays_while_it_has_no_job_from_here() {
        let fast = peer(1, NEAR, Some(1_000));
        let unmeasured = peer(2, NEAR, None);
        assert_eq!(remaining(&[fast, unmeasured]), [1, 2]);
        let busy = Candidate { held: 1, ..unmeasured };
        assert_eq!(remaining(&[fast, busy]), [1]);
        assert_eq!(remaining(&[busy, Candidate { held: 1, ..peer(3, NEAR, None) }]), [2, 3]);
    }

    #[test]
    fn a_provider_left_out_is_tried_again_now_and_then_the_longest_idle_first() {
        let mut fastest = Fastest::default();
        let mut slow = [peer(2, NEAR, Some(1)), peer(3, FAR, Some(2))];
        let mut tried = Vec::new();
        for _ in 0..8 {
            let all = [peer(1, NEAR, Some(1_000)), slow[0], slow[1]];
            let remaining = left(&mut fastest, &all, 4);
            if remaining == [2] {
                slow[0].last_given = 9;
            }
            tried.push(remaining);
        }
        let quick = || vec![1];
        let first = [quick(), quick(), quick(), vec![2]];
        assert_eq!(tried, [first, [quick(), quick(), quick(), vec![3]]].concat());
        let nobody_out = [peer(1, NEAR, Some(1_000)), peer(2, NEAR, Some(900))];
        assert!((0..9).all(|_| left(&mut fastest, &nobody_out, 4) == [1, 2]));
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        assert_eq!(
            remaining(&[peer(1, FAR, Some(u32::MAX)), peer(2, FAR, Some(u32::MAX))]),
            [1, 2]
        );
    }
}
