//! Moves a job to another of its models, or to the clouds that have one.

use std::time::Instant;

use base::{JobId, ProviderId};

use super::{Dispatcher, accept::Prospect};
use crate::{
    job::{Break, Job},
    output::Ending,
};

impl Dispatcher {
    /// Handles a job that has not begun and that no provider can serve with its present model: it
    /// moves to its next served target, or ends. The caller must call `place` afterwards.
    pub(super) fn unmet(&mut self, now: Instant, mut job: Job, ending: Ending) {
        let ending = job.broken_off.map_or(ending, Break::ending);
        let mut busy = matches!(ending, Ending::QueueFull { .. });
        while !self.stopping && (!busy || job.targets_while_busy() > 0) && job.next_target() {
            if self.providers.prospect(&job.spec, &job.target()) != Prospect::Served {
                continue;
            }
            if job.assigned > 0 {
                return self.enqueue(now, job);
            }
            match self.admit(now, job) {
                Some(refused) => (job, busy) = (refused, true),
                None => return,
            }
        }
        self.end(job.id(), ending);
    }

    /// The waiting jobs with fallbacks left that this provider could serve, now or later. When it
    /// joins, changes or drains, they may be better served elsewhere. Oldest first.
    pub(super) fn concerned(&self, id: ProviderId) -> Vec<JobId> {
        let provider = self.providers.get(id);
        let jobs = provider.map(|it| self.queues.with_fallbacks(&it.scope, &it.models));
        jobs.unwrap_or_default()
    }

    /// Moves those of these waiting jobs that a later model serves better to its queue. The moved
    /// jobs keep their age and their time-out. Like requeued jobs they always get a place, since
    /// they already had one. Returns the moved jobs; place them afterwards. O(the jobs) while each
    /// still has a provider, otherwise also O(the providers of its fallbacks).
    pub(super) fn go_on(&mut self, now: Instant, mut jobs: Vec<JobId>) -> Vec<JobId> {
        jobs.retain(|job| self.goes_on(*job));
        // Each moved job has a provider now, and so another time-out and other fallbacks.
        jobs.iter().for_each(|job| self.wait_on(now, *job, true));
        jobs
    }

    /// The number of targets to skip to one that serves the job better: no connected provider can
    /// serve the job with its present target, and one serves the later target.
    pub(super) fn better_served(&self, job: &Job) -> Option<usize> {
        let later = job.targets_left();
        if later.is_empty() || !self.nobody_is_able(job) {
            return None;
        }
        let prospect = |target| self.providers.prospect(&job.spec, target);
        let served = later.iter().position(|target| prospect(target) == Prospect::Served);
        served.map(|before| before + 1)
    }

    fn goes_on(&mut self, id: JobId) -> bool {
        let models_on = self.jobs.get(&id).and_then(|job| self.better_served(job));
        let (Some(models_on), Some(job)) = (models_on, self.jobs.get_mut(&id)) else {
            return false;
        };
        self.queues.remove(job);
        job.go_on(models_on);
        self.queues.push(job);
        true
    }
}

#[cfg(test)]
mod tests {
    use base::Endpoints;

    use super::*;
    use crate::{
        CancelReason, Config, Input, JobSpec, LeaveReason, Offer, Verdict,
        fixture::{
            Bench, SECOND, assign, assign_for, cancel, end, job, offer, offer_of, or_else,
            provider, spec,
        },
    };

    /// Job `number` stands in the queue of this model.
    fn waits_for(bench: &Bench, number: u128, model: &str) -> bool {
        let waiting = bench.dispatcher.jobs.get(&job(number));
        let asks = waiting.filter(|job| job.hold().is_none()).map(|job| job.spec.model.as_str());
        let counted = bench.dispatcher.queues().any(|queue| queue.model.as_str() == model);
        asks == Some(model) && counted
    }

    #[test]
    fn a_job_whose_model_is_lost_goes_on_to_a_served_one() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer_of(&["n"]));
        bench.submit(or_else(1, &["o", "n"]));
        assert_eq!(bench.leave(1), [assign_for(1, 2, "n", 1)], "it was at the one that is gone");
    }

    #[test]
    fn waiting_jobs_go_on_when_their_model_is_gone_drained_or_changed() {
        let unserved = Input::Endpoints { provider: provider(1), endpoints: Endpoints::NONE };
        let changed = Input::Models { provider: provider(1), models: vec!["x".into()], load: 1 };
        let gone = Input::Leave { provider: provider(1), why: LeaveReason::Closed };
        let drained = Input::Drain { provider: provider(1), grace: SECOND };
        for event in [gone, drained, changed, unserved] {
            let mut bench = Bench::new();
            bench.join(1, Offer { load: 1, ..offer(1) });
            bench.join(2, offer_of(&["n"]));
            for number in [1, 2] {
                assert_eq!(bench.submit(or_else(number, &["o", "n"])), []);
            }
            assert_eq!(bench.submit(spec(3)), [], "has nothing to go on to");
            let outputs = bench.input(event.clone());
            assert!(outputs.contains(&assign_for(1, 2, "n", 0)), "{event:?}: {outputs:?}");
            assert!(waits_for(&bench, 2, "n") && waits_for(&bench, 3, "m"), "{event:?}");
        }
    }

    #[test]
    fn a_provider_of_a_later_model_takes_unserved_jobs() {
        for models in [&["n"], &["*"]] {
            let mut bench = Bench::new();
            bench.submit(or_else(1, &["o", "n"]));
            let first = if models == &["*"] { "m" } else { "n" };
            assert_eq!(bench.join(1, offer_of(models)), [assign_for(1, 1, first, 0)]);
        }
        let mut bench = Bench::new();
        bench.join(1, offer_of(&["x"]));
        bench.submit(or_else(1, &["n"]));
        let serves = |models: &[&str]| Input::Models {
            provider: provider(1),
            models: offer_of(models).models,
            load: 0,
        };
        assert_eq!(bench.input(serves(&["n"])), [assign_for(1, 1, "n", 0)]);
    }

    #[test]
    fn while_somebody_serves_its_model_a_job_stays_however_busy_that_one_is() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 1, ..offer(1) });
        bench.join(2, Offer { load: 1, ..offer(1) });
        bench.join(3, offer_of(&["n"]));
        bench.submit(or_else(1, &["n"]));
        assert_eq!(bench.leave(1), []);
        assert!(waits_for(&bench, 1, "m"));
        assert_eq!(bench.leave(2), [assign_for(1, 3, "n", 0)]);
    }

    #[test]
    fn it_goes_on_only_to_who_can_have_it_and_never_back() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 1, ..offer(1) });
        bench.join(2, Offer { max_size: 10, ..offer_of(&["n"]) });
        bench.submit(JobSpec { size: 11, ..or_else(1, &["n", "o"]) });
        assert_eq!(bench.leave(1), []);
        assert!(waits_for(&bench, 1, "m"), "nobody could have it");
        bench.join(3, Offer { load: 1, ..offer_of(&["o"]) });
        assert!(waits_for(&bench, 1, "o"));
        bench.join(4, offer_of(&["m", "n"]));
        bench.leave(3);
        assert!(waits_for(&bench, 1, "o"));
        assert_eq!(bench.join(5, offer_of(&["o"])), [assign_for(1, 5, "o", 0)]);
    }

    #[test]
    fn a_pinned_job_goes_on_at_its_own_provider_alone() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 1, ..offer(1) });
        bench.join(2, offer_of(&["n"]));
        bench.submit(JobSpec { pinned: Some(provider(1)), ..or_else(1, &["n"]) });
        let serves = |model: &str| Input::Models {
            provider: provider(1),
            models: vec![model.into()],
            load: 1,
        };
        assert_eq!(bench.input(serves("o")), []);
        assert!(waits_for(&bench, 1, "m"));
        bench.input(serves("n"));
        assert!(waits_for(&bench, 1, "n"));
        assert_eq!(bench.leave(1), [end(1, Ending::ProviderLost)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_declined_job_goes_on_when_nobody_else_has_its_model() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer_of(&["n"]));
        bench.submit(or_else(1, &["n"]));
        assert_eq!(bench.finished(1, 1, Verdict::Declined), [assign_for(1, 2, "n", 1)]);
    }

    #[test]
    fn a_requeued_job_keeps_its_age_its_time_out_and_its_place() {
        let mut bench = Bench::with(Config { max_queue_len: 2, ..Config::default() });
        bench.join(1, Offer { load: 1, ..offer(1) });
        bench.submit(or_else(1, &["n"]));
        let accepted = bench.now;
        bench.wait(SECOND * 20);
        bench.join(2, Offer { load: 1, ..offer_of(&["n"]) });
        for (number, key) in [(2, "a"), (3, "b")] {
            bench.submit(JobSpec { model: "n".into(), key: key.into(), ..spec(number) });
        }
        bench.leave(1);
        let queue = bench.dispatcher.queues().next().map(|queue| (queue.len, queue.oldest));
        assert_eq!(queue, Some((3, accepted)));
        bench.leave(2);
        bench.wait(SECOND * 29);
        assert!(waits_for(&bench, 1, "n"));
        bench.wait(SECOND);
        assert!(!waits_for(&bench, 1, "n"));
    }

    #[test]
    fn a_requeued_job_does_not_cost_its_key_the_turn() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 1, ..offer(1) });
        bench.join(2, Offer { load: 1, ..offer_of(&["n"]) });
        bench.submit(or_else(1, &["n"]));
        bench.submit(spec(2));
        bench.submit(JobSpec { key: "other".into(), ..spec(3) });
        bench.leave(1);
        assert!(waits_for(&bench, 1, "n"));
        assert_eq!(bench.join(3, offer(2)), [assign(2, 3, 0), assign(3, 3, 0)]);
    }

    #[test]
    fn ten_thousand_that_go_on_and_ten_thousand_that_stay() {
        let mut bench = Bench::with(Config { max_queue_len: 20_000, ..Config::default() });
        bench.join(1, Offer { load: 1, ..offer(1) });
        bench.join(2, Offer { load: 1, ..offer_of(&["o"]) });
        for number in 0..20_000_u128 {
            let fallbacks: &[&str] = if number % 2 == 0 { &["n", "o"] } else { &[] };
            bench.submit(JobSpec {
                key: number.to_string().as_str().into(),
                ..or_else(number, fallbacks)
            });
        }
        bench.leave(1);
        let queues: Vec<_> =
            bench.dispatcher.queues().map(|it| (it.model.as_str(), it.len)).collect();
        assert_eq!(queues, [("m", 10_000), ("o", 10_000)]);
        assert_eq!(bench.wait(SECOND * 30).len(), 10_000);
        assert_eq!(bench.wait(SECOND * 570).len(), 10_000);
        bench.assert_no_jobs();
    }

    #[test]
    fn each_fault_sends_on_to_the_next_model_with_its_own_requeues() {
        let mut bench = Bench::with(Config { max_requeue_count: 1, ..Config::default() });
        bench.join(1, offer_of(&["m", "n"]));
        bench.join(2, offer_of(&["m"]));
        assert_eq!(bench.submit(or_else(1, &["o", "n"])), [assign(1, 1, 0)]);
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [assign(1, 2, 1)]);
        let avoids_nobody = assign_for(1, 1, "n", 2);
        assert_eq!(bench.finished(1, 2, Verdict::Failed), [avoids_nobody], "o is passed over");
        bench.join(3, offer_of(&["n"]));
        assert_eq!(bench.leave(1), [assign_for(1, 3, "n", 3)]);
        assert_eq!(bench.leave(3), [end(1, Ending::RequeueExhausted)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_request_time_out_sends_on_to_the_next_model() {
        let mut bench = Bench::new();
        bench.join(1, offer_of(&["m", "n"]));
        bench.submit(or_else(1, &["n"]));
        let cancelled = || cancel(1, 1, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND * 300), [cancelled(), assign_for(1, 1, "n", 1)]);
        assert_eq!(bench.wait(SECOND * 300), [cancelled(), end(1, Ending::RequestTimeout)]);
    }

    #[test]
    fn a_job_that_has_waited_long_enough_takes_only_who_is_free() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer_of(&["n"]));
        bench.join(3, offer_of(&["o"]));
        bench.submit(spec(1));
        bench.submit(JobSpec { model: "n".into(), ..spec(2) });
        bench.submit(or_else(3, &["n", "o"]));
        bench.submit(or_else(4, &["n"]));
        assert_eq!(bench.wait(SECOND * 30), [assign_for(3, 3, "o", 0)]);
        assert!(waits_for(&bench, 4, "m"));
        assert_eq!(bench.finished(3, 3, Verdict::Failed), [end(3, Ending::ProviderFailed)]);
    }

    #[test]
    fn a_begun_or_blameless_job_does_not_fall_back() {
        let mut bench = Bench::new();
        let two = || Offer { max_concurrent: 9, ..offer_of(&["m", "n"]) };
        bench.join(1, two());
        for number in 1..=3 {
            bench.submit(or_else(number, &["n"]));
        }
        bench.begun(1);
        bench.join(2, two());
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [end(1, Ending::ProviderFailed)]);
        assert_eq!(bench.client_gone(2), [cancel(2, 1, CancelReason::ClientDisconnect)]);
        let revoked = bench.input(Input::Revoked { key: "k".into() });
        let cancelled = cancel(3, 1, CancelReason::ClientDisconnect);
        assert_eq!(revoked, [cancelled, end(3, Ending::Revoked)]);
        let pinned = |number| JobSpec { pinned: Some(provider(1)), ..or_else(number, &["n"]) };
        bench.submit(pinned(4));
        assert_eq!(bench.finished(4, 1, Verdict::Failed), [assign_for(4, 1, "n", 1)]);
        assert_eq!(bench.leave(1), [end(4, Ending::ProviderLost)]);
        bench.submit(or_else(5, &["n"]));
        bench.input(Input::Shutdown);
        assert_eq!(bench.leave(2), [end(5, Ending::ShuttingDown)]);
    }
}
