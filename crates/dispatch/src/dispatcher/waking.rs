//! Providers that cannot be reached for a while: their backend is not there, or they are asleep.

use std::time::{Duration, Instant};

use base::{JobId, ProviderId};

use super::{Dispatcher, accept::Prospect};
use crate::{
    input::Verdict,
    job::{Break, Hold, Job, Phase},
    output::{CancelReason, Ending},
    provider::Provider,
    readiness::Unready,
    timers::Timer,
};

/// How often a job comes back from backends that take no requests. The time in queues ends almost
/// every such job before that; only many backends that are slow to refuse reach this limit.
const MAX_UNREADY: u32 = 200;

impl Dispatcher {
    /// Handles a job that its provider gives back because its backend takes no requests. Nothing of
    /// it was done, so it does not count as a requeue.
    pub(super) fn not_ready(&mut self, now: Instant, mut job: Job, hold: Hold, why: Unready) {
        let id = job.id();
        let fresh = self.refused(now, hold.provider, why);
        if hold.begun() {
            self.break_off(now, job, hold, Break::Failed);
        } else if job.unready >= MAX_UNREADY {
            self.not_answered(now, job, hold, Verdict::Failed);
        } else {
            job.unready += 1;
            self.try_again(now, job);
        }
        // By now the job is in its queue, so it comes before others that are placed now.
        if fresh {
            self.lost_for_now(now, hold.provider);
        }
        self.place(now, id);
    }

    /// Records that a provider's backend takes no requests. Returns whether that is news.
    fn refused(&mut self, now: Instant, id: ProviderId, why: Unready) -> bool {
        let refused = self.providers.change(id, |provider| provider.readiness.refused(why));
        let Some(wait) = refused.flatten() else { return false };
        self.timers.arm(Timer::Backend(id), now, wait, "next try of a backend");
        true
    }

    /// Handles a provider that may have ceased to count: waiting jobs may be better served
    /// elsewhere.
    fn lost_for_now(&mut self, now: Instant, id: ProviderId) {
        let moved = self.go_on(now, self.concerned(id));
        self.place_all(now, moved);
        self.fill_limited(now);
        self.note_change(now, id);
    }

    /// It is time to try a backend again.
    pub(super) fn backend_due(&mut self, now: Instant, id: ProviderId) {
        if self.providers.change(id, |provider| provider.readiness.try_again()).is_some() {
            self.fill(now, id);
        }
    }

    /// Handles a provider that counts again after it was asleep or its backend was away.
    pub(super) fn found_again(&mut self, now: Instant, id: ProviderId) {
        // Before the provider is filled, so that jobs which move to its models are in its queues.
        let moved = self.go_on(now, self.concerned(id));
        self.fill(now, id);
        self.place_all(now, moved);
        self.note_change(now, id);
    }

    /// Records a sign that a provider's backend is there. Returns whether that changes anything;
    /// then the caller must call `found_again` or do the same.
    pub(super) fn backend_is_there(&mut self, id: ProviderId) -> bool {
        let changes = self.providers.change(id, |provider| provider.readiness.note_back());
        let changes = changes.unwrap_or(false);
        if changes {
            self.timers.disarm(Timer::Backend(id));
        }
        changes
    }

    /// Records a sign of life of a provider. Returns whether it was asleep; then the caller must
    /// fill it.
    pub(super) fn heard(&mut self, id: ProviderId) -> bool {
        let was_asleep = |provider: &mut Provider| std::mem::take(&mut provider.asleep);
        self.providers.change(id, was_asleep).unwrap_or(false)
    }

    /// Handles the acknowledgement of a job.
    pub(super) fn acknowledged(&mut self, now: Instant, id: JobId, by: ProviderId) {
        self.heard(by);
        let hold = self.jobs.get(&id).and_then(Job::hold).filter(|hold| hold.provider == by);
        if let Some(hold) = hold
            && self.set_phase(id, Phase::Given, Phase::Unbegun)
        {
            // Counted from the assignment, so a late acknowledgement gives no more time.
            self.arm_request(id, hold.since);
        }
        self.fill(now, by);
    }

    /// Handles a job whose provider has not acknowledged it in time: it moves if it can be served
    /// elsewhere. Otherwise it goes on waiting for the acknowledgement.
    pub(super) fn unacknowledged(&mut self, now: Instant, id: JobId, hold: Hold) {
        let Some(limit) = self.left_of_request(now, hold) else {
            return self.timed_out(now, id, Ending::RequestTimeout);
        };
        self.providers.change(hold.provider, |provider| provider.asleep = true);
        let Some(job) = self.jobs.get(&id) else { return };
        let other = self.has_other_provider(job, hold.provider);
        // A provider may only have a slow link. If no other one could serve the job, moving it
        // would gain nothing.
        if self.stopping || !(other || self.has_served_fallback(job)) {
            return self.arm_acknowledgement(now, id, limit);
        }
        let Some((job, hold)) = self.release(id) else { return };
        self.stop(now, id, hold, CancelReason::Timeout);
        match other {
            true => self.requeue(now, job, None),
            false => self.unmet(now, job, Ending::RequestTimeout),
        }
        self.place(now, id);
        self.refill(now, hold.provider);
    }

    /// The rest of the request time-out.
    fn left_of_request(&self, now: Instant, hold: Hold) -> Option<Duration> {
        let held = now.saturating_duration_since(hold.since);
        self.config.request_timeout.checked_sub(held).filter(|left| !left.is_zero())
    }

    /// Whether another provider serves the job's model, and it may be requeued.
    pub(super) fn has_other_provider(&self, job: &Job, present: ProviderId) -> bool {
        job.may_be_requeued(&self.config)
            && self.providers.able(job.demand()).any(|(other, _)| other != present)
    }

    /// Whether a later model of the job is served.
    pub(super) fn has_served_fallback(&self, job: &Job) -> bool {
        let served = |target| self.providers.prospect(&job.spec, target) == Prospect::Served;
        job.targets_left().iter().any(served)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config, Input, JobSpec, Offer,
        fixture::{
            Bench, SECOND, assign, assign_for, cancel, end, job, offer, offer_of, or_else,
            provider, spec,
        },
    };

    fn acknowledging(max_concurrent: u32) -> Offer {
        Offer { acknowledges: true, ..offer(max_concurrent) }
    }

    fn acknowledged(number: u128, by: u64) -> Input {
        Input::Acknowledged { job: job(number), provider: provider(by) }
    }

    #[test]
    fn a_job_of_a_backend_that_is_away_waits_as_for_an_absent_provider() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        let mut tries = 0;
        let outputs = loop {
            assert_eq!(bench.finished(1, 1, Verdict::Unreachable), []);
            assert_eq!(bench.dispatcher.wait(job(1)).map(|wait| wait.providers), Some(0));
            tries += 1;
            let mut outputs = Vec::new();
            while outputs.is_empty() {
                outputs = bench.wait(SECOND / 2);
            }
            if outputs != [assign(1, 1, tries)] {
                break outputs;
            }
        };
        assert_eq!((outputs, tries), (vec![end(1, Ending::QueueTimeout)], 9));
        assert!(bench.dispatcher.providers().all(|view| view.resting_until.is_none()), "no fault");
    }

    #[test]
    fn others_that_wait_do_not_begin_anew_with_each_try() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.submit(JobSpec { key: "other".into(), ..spec(2) });
        bench.finished(1, 1, Verdict::Unreachable);
        let (mut ended, start) = (Vec::new(), bench.now);
        while bench.now - start < SECOND * 31 {
            for output in bench.wait(SECOND / 10) {
                match output {
                    crate::Output::Assign { job: id, .. } => {
                        let number = if id == job(1) { 1 } else { 2 };
                        ended.extend(bench.finished(number, 1, Verdict::Unreachable));
                    }
                    other => ended.push(other),
                }
            }
        }
        assert_eq!(ended, [1, 2].map(|number| end(number, Ending::QueueTimeout)));
    }

    #[test]
    fn another_provider_gets_the_job_at_once() {
        for verdict in [Verdict::Unreachable, Verdict::Loading] {
            let mut bench = Bench::new();
            bench.join(1, offer(1));
            bench.join(2, Offer { load: 1, max_concurrent: 2, ..offer(2) });
            bench.submit(spec(1));
            assert_eq!(bench.finished(1, 1, verdict), [assign(1, 2, 1)]);
        }
    }

    #[test]
    fn a_fallback_is_used_while_the_backend_is_away_and_not_while_it_loads() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer_of(&["n"]));
        bench.submit(or_else(1, &["n"]));
        assert_eq!(bench.finished(1, 1, Verdict::Loading), []);
        assert_eq!(bench.wait(SECOND / 2), [assign(1, 1, 1)]);
        let fallen = [assign_for(1, 2, "n", 2)];
        assert_eq!(bench.finished(1, 1, Verdict::Unreachable), fallen);
    }

    #[test]
    fn a_backend_that_loads_is_waited_for_as_a_busy_one() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        let start = bench.now;
        let mut outputs = Vec::new();
        while !matches!(outputs[..], [crate::Output::End { .. }]) {
            if matches!(outputs[..], [] | [crate::Output::Assign { .. }]) {
                bench.finished(1, 1, Verdict::Loading);
            }
            outputs = bench.wait(SECOND / 2);
        }
        let waited = (bench.now - start).as_secs();
        assert!((600..605).contains(&waited), "{waited}");
    }

    #[test]
    fn a_backend_that_answers_is_back_and_gets_what_waits() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        bench.submit(spec(1));
        bench.submit(spec(2));
        bench.finished(1, 1, Verdict::Unreachable);
        assert_eq!(bench.begun(2), [assign(1, 1, 1)], "the other one shows that it is there");
        bench.finished(1, 1, Verdict::Unreachable);
        let models = Input::Models { provider: provider(1), models: vec!["m".into()], load: 1 };
        assert_eq!(bench.input(models), [assign(1, 1, 2)], "so does a list of models");
        bench.finished(1, 1, Verdict::Unreachable);
        bench.leave(1);
        bench.client_gone(1);
        bench.assert_no_jobs();
        assert_eq!(bench.dispatcher.poll_timeout(), None);
    }

    #[test]
    fn a_job_that_comes_back_without_end_ends() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer(1));
        bench.submit(spec(1));
        let (mut outputs, mut tries) = (vec![assign(1, 1, 0)], 0);
        while let [crate::Output::Assign { provider: at, .. }] = outputs[..] {
            tries += 1;
            // Each refusal takes long enough that the other backend may be tried again afterwards.
            bench.wait(SECOND * 5);
            let by = if at == provider(1) { 1 } else { 2 };
            outputs = bench.finished(1, by, Verdict::Unreachable);
        }
        assert_eq!((outputs, tries), (vec![end(1, Ending::ProviderFailed)], MAX_UNREADY + 1));
    }

    #[test]
    fn a_job_that_nobody_acknowledges_moves_and_its_late_answer_counts_for_nothing() {
        let mut bench = Bench::new();
        bench.join(1, acknowledging(1));
        bench.submit(spec(1));
        bench.join(2, acknowledging(1));
        assert_eq!(bench.wait(SECOND * 9), []);
        let cancelled = cancel(1, 1, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND), [cancelled, assign(1, 2, 1)]);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        assert_eq!(bench.input(acknowledged(1, 2)), []);
        assert_eq!(bench.wait(SECOND * 299), [], "it has all the time that it wants");
    }

    #[test]
    fn a_sleeper_gets_nothing_until_it_says_something() {
        let mut bench = Bench::new();
        bench.join(1, acknowledging(1));
        bench.submit(spec(1));
        bench.join(2, acknowledging(1));
        bench.wait(SECOND * 10);
        assert_eq!(bench.submit(spec(2)), []);
        let pong = Input::Load { provider: provider(1), load: 0 };
        assert_eq!(bench.input(pong), [assign(2, 1, 0)]);
        let healthy = bench.dispatcher.providers().all(|view| view.resting_until.is_none());
        assert!(healthy, "sleep is no fault");
    }

    #[test]
    fn a_job_without_another_place_stays_with_the_sleeper() {
        let mut bench = Bench::new();
        bench.join(1, acknowledging(2));
        bench.submit(spec(1));
        assert_eq!(bench.wait(SECOND * 25), []);
        assert_eq!(bench.submit(spec(2)), [], "it gets no more");
        bench.join(2, offer(2));
        let cancelled = cancel(1, 1, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND * 5), [cancelled, assign(1, 2, 1)], "at the next look");
        assert_eq!(bench.dispatcher.in_flight(), 2);
    }

    #[test]
    fn the_request_time_out_ends_an_unacknowledged_job_too() {
        let config = Config { request_timeout: SECOND * 25, ..Config::default() };
        let mut bench = Bench::with(config);
        bench.join(1, acknowledging(1));
        bench.submit(spec(1));
        assert_eq!(bench.wait(SECOND * 24), []);
        let cancelled = cancel(1, 1, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND), [cancelled, end(1, Ending::RequestTimeout)]);
    }

    #[test]
    fn a_head_is_an_acknowledgement_and_who_gives_none_is_not_asked_for_one() {
        let mut bench = Bench::new();
        bench.join(1, acknowledging(1));
        bench.submit(spec(1));
        bench.join(2, offer(1));
        bench.begun(1);
        bench.submit(spec(2));
        assert_eq!(bench.wait(SECOND * 299), []);
    }
}
