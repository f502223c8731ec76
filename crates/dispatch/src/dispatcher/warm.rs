//! Jobs whose prompts are known to busy providers: when such a job waits rather than have its
//! prompt computed again.

use std::{
    cell::OnceCell,
    time::{Duration, Instant},
};

use base::ProviderId;

use super::{
    Dispatcher,
    loading::{is_worth_a_wait, rank},
};
use crate::{job::Demand, provider::Provider, route::Known};

/// How many bytes of a prompt count as computed in a second: some 1,000 tokens. A fixed rate, since
/// a measured one would need the share of each prompt that was computed.
const BYTES_PER_SECOND: u64 = 4 * 1024;

/// The longest wait for a provider that knows a prompt, and the shortest wait that is worth it.
const LONGEST: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_secs(1);

/// How many jobs a provider passes over in one look. The jobs after them do not wait for providers
/// that know their prompts.
const MOST_PASSED: u32 = 32;

/// The providers that know a job's prompt. They are looked up at most once, and only if they
/// matter.
#[derive(Debug, Default)]
pub(super) struct Warmth(OnceCell<Known>);

impl Warmth {
    /// For a job before which this number of jobs was passed over.
    pub(super) fn after_passing(jobs: u32) -> Self {
        let ignored = || Self(OnceCell::from(Known::default()));
        if jobs < MOST_PASSED { Self::default() } else { ignored() }
    }
}

impl Dispatcher {
    /// Until when a job waits for others rather than go to this free provider; `None` if it does not wait. See
    /// [`Dispatcher::waits_for_load`] for `is_awaited`.
    pub(super) fn waits_until(
        &self,
        now: Instant,
        demand: Demand<'_>,
        (id, provider): (ProviderId, &Provider),
        warmth: &Warmth,
        is_awaited: impl FnOnce(u8) -> bool,
    ) -> Option<Instant> {
        let for_load = self.waits_for_load(now, demand, provider, is_awaited);
        for_load.or_else(|| self.waits_for_prompt(now, demand, (id, provider), warmth))
    }

    /// Until when a job waits for a provider that knows much more of its prompt, is not farther
    /// away, and lacks only a free slot. The wait is no longer than it would take to compute what
    /// this free provider does not know.
    fn waits_for_prompt(
        &self,
        now: Instant,
        demand: Demand<'_>,
        (id, provider): (ProviderId, &Provider),
        warmth: &Warmth,
    ) -> Option<Instant> {
        let spec = &demand.job.spec;
        let most = spec.affinity.heads().first().map_or(0, |head| head.length);
        // No provider can know more of a prompt than its longest head. A lent job has its provider
        // already.
        if patience(most).is_none() || spec.lent {
            return None;
        }
        let known = warmth.0.get_or_init(|| self.policy.known(spec, demand.model));
        let (own, farthest) = (known.of(id), rank(demand, provider));
        // The providers that know most come first.
        let patience = known.iter().find_map(|(other, bytes)| {
            let patience = patience(bytes.saturating_sub(own))?;
            let other = self.providers.able_one(demand, other)?;
            (is_worth_a_wait(demand, other) && rank(demand, other) <= farthest).then_some(patience)
        });
        self.patient_until(now, demand.job, patience?)
    }

    /// Places jobs that no longer have to wait because the providers that they waited for may be
    /// gone. O(the free providers that have passed over jobs).
    pub(super) fn end_prompt_waits(&mut self, now: Instant) {
        if self.passing.is_empty() || self.queues.depth() == 0 {
            return;
        }
        let passing: Vec<_> = self.passing.iter().copied().collect();
        passing.into_iter().for_each(|id| self.fill(now, id));
    }
}

/// How long it is worth waiting for a provider that knows this many bytes more of a prompt; `None`
/// if not at all.
fn patience(bytes: u32) -> Option<Duration> {
    let millis = u64::from(bytes) * 1_000 / BYTES_PER_SECOND;
    let patience = Duration::from_millis(millis).min(LONGEST);
    (patience >= SHORTEST).then_some(patience)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use base::JobId;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Affinity, Config, Distance, Input, JobSpec, LeaveReason, Offer, Output, PrefixAffinity,
        Verdict,
        fixture::{Bench, SECOND, assign, offer, provider, spec},
    };

    /// A job of which the prompt has this many KiB, which go on with those of a shorter one.
    fn with_prompt(number: u128, kib: usize) -> JobSpec {
        let prompt: Vec<u8> = (0..kib * 1024 + 1).map(|at| (at * at / 7) as u8).collect();
        JobSpec { affinity: Affinity::of(&[], &prompt), ..spec(number) }
    }

    fn bench() -> Bench {
        let mut bench = Bench::with(Config::default());
        bench.dispatcher.policy = Box::<PrefixAffinity>::default();
        bench
    }

    /// Provider 1 knows 20 KiB and is full; provider 2 knows nothing and is free.
    fn full_and_cold() -> Bench {
        let mut bench = bench();
        bench.join(1, offer(1));
        assert_eq!(bench.submit(with_prompt(1, 20)), [assign(1, 1, 0)]);
        bench.join(2, offer(1));
        bench
    }

    #[test]
    fn a_job_waits_for_whom_knows_its_prompt_as_long_as_that_takes_to_compute() {
        let mut bench = full_and_cold();
        assert_eq!(bench.submit(with_prompt(2, 21)), []);
        assert_eq!(bench.wait(SECOND * 4), []);
        assert_eq!(bench.wait(SECOND), [assign(2, 2, 0)]);
    }

    #[test]
    fn no_wait_is_longer_than_ten_seconds() {
        let mut bench = bench();
        bench.join(1, offer(1));
        bench.submit(with_prompt(1, 900));
        bench.join(2, offer(1));
        assert_eq!(bench.submit(with_prompt(2, 901)), []);
        assert_eq!(bench.wait(SECOND * 9), []);
        assert_eq!(bench.wait(SECOND), [assign(2, 2, 0)]);
    }

    #[test]
    fn a_slot_that_becomes_free_in_time_is_taken() {
        let mut bench = full_and_cold();
        bench.submit(with_prompt(2, 21));
        bench.wait(SECOND * 4);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), [assign(2, 1, 0)]);
    }

    #[test]
    fn others_pass_a_job_that_waits_and_little_is_not_waited_for() {
        let mut bench = full_and_cold();
        assert_eq!(bench.submit(with_prompt(2, 21)), []);
        assert_eq!(bench.submit(spec(3)), [assign(3, 2, 0)]);
        let mut bench = bench_with_little();
        assert_eq!(bench.submit(with_prompt(2, 4)), [assign(2, 2, 0)]);
    }

    fn bench_with_little() -> Bench {
        let mut bench = bench();
        bench.join(1, offer(1));
        bench.submit(with_prompt(1, 3));
        bench.join(2, offer(1));
        bench
    }

    #[test]
    fn whoever_it_waits_for_may_go() {
        let gone = Input::Leave { provider: provider(1), why: LeaveReason::Closed };
        let paused = Input::Condition { provider: provider(1), speed: None, throttle: 0 };
        let drained = Input::Drain { provider: provider(1), grace: SECOND };
        for event in [gone, paused, drained] {
            let mut bench = full_and_cold();
            bench.begun(1);
            bench.submit(with_prompt(2, 21));
            let outputs = bench.input(event.clone());
            assert!(outputs.contains(&assign(2, 2, 0)), "{event:?}: {outputs:?}");
        }
    }

    #[test]
    fn nobody_waits_for_one_that_is_farther_away() {
        let mut bench = bench();
        bench.join(1, Offer { distance: Distance::Near, ..offer(1) });
        bench.submit(with_prompt(1, 20));
        bench.join(2, offer(1));
        assert_eq!(bench.submit(with_prompt(2, 21)), [assign(2, 2, 0)]);
    }

    #[test]
    fn of_many_jobs_that_wait_only_some_are_passed_over() {
        let mut bench = full_and_cold();
        for number in 2..=40 {
            let key = format!("k{number}").as_str().into();
            let outputs = bench.submit(JobSpec { key, ..with_prompt(number, 21) });
            assert_eq!(outputs, [], "each by itself");
        }
        assert_eq!(bench.submit(spec(99)), [assign(99, 2, 0)]);
        let outputs = bench.finished(99, 2, Verdict::Answered);
        let passed = 2 + u128::from(MOST_PASSED);
        assert_eq!(outputs, [assign(passed, 2, 0)], "the first after those that are passed over");
    }

    /// Follows which provider has which job, as the dispatcher says.
    fn follow(running: &mut BTreeMap<JobId, ProviderId>, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Assign { job, provider, .. } => drop(running.insert(job, provider)),
                Output::End { job, .. } | Output::Cancel { job, .. } => drop(running.remove(&job)),
                _ => {}
            }
        }
    }

    proptest! {
        /// Whatever happens, a job that waits beside a free provider is looked at again within ten seconds, and goes to
        /// one that has much room.
        #[test]
        fn every_wait_ends(steps in prop::collection::vec((0u8..6, 1u64..4, 0usize..4), 1..80)) {
            let mut bench = bench();
            let (mut running, mut there) = (BTreeMap::new(), BTreeSet::new());
            for (number, (what, who, kib)) in (100..).zip(steps) {
                let outputs = match what {
                    0 if there.insert(who) => bench.join(who, offer(1)),
                    1 if there.remove(&who) => bench.leave(who),
                    2 => bench.wait(SECOND * 2),
                    3 => running.pop_first().map_or(Vec::new(), |(job, provider)| {
                        let (verdict, tokens) = (Verdict::Answered, None);
                        bench.input(Input::Finished { job, provider, verdict, tokens })
                    }),
                    _ => bench.submit(with_prompt(number, kib * 12)),
                };
                follow(&mut running, outputs);
                let is_free = there.iter().any(|who| {
                    running.values().all(|provider_of| *provider_of != provider(*who))
                });
                if is_free && bench.dispatcher.queue_depth() > 0 {
                    let due = bench.dispatcher.poll_timeout().map(|(at, _)| at);
                    prop_assert!(due.is_some_and(|due| due <= bench.now + LONGEST));
                }
            }
            bench.join(9, offer(100));
            bench.wait(LONGEST);
            prop_assert_eq!(bench.dispatcher.queue_depth(), 0);
        }
    }
}
