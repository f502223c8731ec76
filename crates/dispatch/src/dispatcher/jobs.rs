//! A job's way from acceptance to its end.

use std::time::Instant;

use base::{JobId, KeyId, ProviderId};

use super::Dispatcher;
use crate::{
    input::{JobSpec, Verdict, Waiting},
    job::{Hold, Job, Phase, State},
    output::{CancelReason, Ending, Output},
    timers::Timer,
};

impl Dispatcher {
    pub(super) fn submit(&mut self, now: Instant, spec: JobSpec) {
        if self.jobs.contains_key(&spec.id) {
            return;
        }
        if let Some(ending) = self.refusal(&spec) {
            return self.end(spec.id, ending);
        }
        self.accepted += 1;
        let job = Job::new(spec, self.accepted, now);
        if let Some(provider) = self.choose(&job) {
            self.assign(now, job, provider);
        } else if self.queues.has_room(&job.spec, &self.config) {
            self.enqueue(now, job);
        } else {
            let retry_after = self.retry_after(&job.spec);
            self.end(job.id(), Ending::QueueFull { retry_after });
        }
    }

    pub(super) fn begun(&mut self, now: Instant, id: JobId) {
        if self.set_phase(id, Phase::Unbegun, Phase::Begun) {
            self.arm_idle(id, now);
        }
    }

    pub(super) fn progress(&mut self, now: Instant, id: JobId, at: Instant, waiting: Waiting) {
        let idle = now.saturating_duration_since(at) >= self.config.idle_timeout;
        if !self.set_phase(id, Phase::Asked, Phase::Begun) {
            return;
        }
        match waiting {
            _ if !idle => self.arm_idle(id, at.min(now)),
            Waiting::Provider => self.timed_out(now, id, Ending::IdleTimeout),
            Waiting::Client => {
                let Some((_, hold)) = self.release(id) else { return };
                self.stop(now, id, hold, CancelReason::ClientDisconnect);
                self.end(id, Ending::ClientStalled);
                self.has_room(now, hold.provider);
            }
        }
    }

    pub(super) fn finished(&mut self, now: Instant, id: JobId, by: ProviderId, verdict: Verdict) {
        let holder = self.jobs.get(&id).and_then(Job::hold).map(|hold| hold.provider);
        if holder != Some(by) {
            return;
        }
        let Some((job, hold)) = self.release(id) else { return };
        let rests = match verdict {
            Verdict::Answered => self.answered(now, hold),
            Verdict::AnsweredWithFault | Verdict::Failed => self.fault(now, hold),
            Verdict::Declined | Verdict::Unserved => false,
        };
        match verdict {
            Verdict::Failed | Verdict::Declined => self.not_answered(now, job, hold, verdict),
            Verdict::Unserved => self.unserved(now, job),
            Verdict::Answered | Verdict::AnsweredWithFault => {}
        }
        self.has_room(now, by);
        if rests {
            self.fill_limited(now);
        }
    }

    pub(super) fn client_gone(&mut self, now: Instant, id: JobId) {
        if let Some((_, hold)) = self.release(id) {
            self.stop(now, id, hold, CancelReason::ClientDisconnect);
            self.has_room(now, hold.provider);
        } else {
            self.unqueue(id);
        }
    }

    pub(super) fn revoked(&mut self, now: Instant, key: &KeyId) {
        let of_key = self.jobs.values().filter(|job| job.spec.key == *key);
        let jobs: Vec<JobId> = of_key.map(Job::id).collect();
        for id in jobs {
            self.client_gone(now, id);
            self.end(id, Ending::Revoked);
        }
    }

    /// The job's deadline has come.
    pub(super) fn job_due(&mut self, now: Instant, id: JobId) {
        match self.jobs.get(&id).map(|job| job.state) {
            Some(State::Queued { .. }) => {
                self.unqueue(id);
                self.end(id, Ending::QueueTimeout);
            }
            Some(State::Held(Hold { phase: Phase::Unbegun, .. })) => {
                self.timed_out(now, id, Ending::RequestTimeout);
            }
            Some(State::Held(_)) => {
                self.set_phase(id, Phase::Begun, Phase::Asked);
                self.outputs.push_back(Output::AskProgress { job: id });
            }
            None => {}
        }
    }

    /// Takes the job from its provider and out of the dispatcher.
    pub(super) fn release(&mut self, id: JobId) -> Option<(Job, Hold)> {
        let hold = self.jobs.get(&id)?.hold()?;
        self.timers.disarm(Timer::Job(id));
        if let Some(provider) = self.providers.get_mut(hold.provider) {
            provider.release(id);
        }
        self.jobs.remove(&id).map(|job| (job, hold))
    }

    /// Takes the job out of its queue and out of the dispatcher.
    pub(super) fn unqueue(&mut self, id: JobId) {
        self.timers.disarm(Timer::Job(id));
        if let Some(job) = self.jobs.remove(&id) {
            self.queues.remove(&job);
        }
    }

    /// What becomes of a job that its provider, which is gone or drained, did not finish. Place it
    /// afterwards.
    pub(super) fn lost(&mut self, now: Instant, job: Job, hold: Hold) {
        if hold.begun() || job.spec.pinned.is_some() {
            self.end(job.id(), Ending::ProviderLost);
        } else {
            self.requeue(now, job, None);
        }
    }

    /// Lets the job wait for another try; place it afterwards. `told` is the provider it comes from,
    /// if that is to be told when this was once too often.
    fn requeue(&mut self, now: Instant, mut job: Job, told: Option<ProviderId>) {
        if self.stopping {
            return self.end(job.id(), Ending::ShuttingDown);
        }
        if job.attempt >= self.config.max_requeue_count {
            if let Some(provider) = told {
                self.cancel(job.id(), provider, CancelReason::RequeueExhausted);
            }
            return self.end(job.id(), Ending::RequeueExhausted);
        }
        job.attempt += 1;
        self.enqueue(now, job);
    }

    /// Its provider failed or declined it.
    fn not_answered(&mut self, now: Instant, mut job: Job, hold: Hold, verdict: Verdict) {
        job.avoided.push(hold.provider);
        let nobody = self.providers.able(&job).next().is_none();
        // A pinned job has nobody to wait for, a declined one may yet see another provider join.
        let hopeless = nobody && (verdict == Verdict::Failed || job.spec.pinned.is_some());
        if hold.begun() || hopeless {
            return self.end(job.id(), Ending::ProviderFailed);
        }
        let id = job.id();
        self.requeue(now, job, Some(hold.provider));
        self.place(now, id);
    }

    /// Its provider does not serve it in the shape that it was asked for.
    fn unserved(&mut self, now: Instant, job: Job) {
        let id = job.id();
        self.requeue(now, job, None);
        self.place(now, id);
    }

    /// Its provider took too long.
    fn timed_out(&mut self, now: Instant, id: JobId, ending: Ending) {
        let Some((_, hold)) = self.release(id) else { return };
        self.stop(now, id, hold, CancelReason::Timeout);
        self.end(id, ending);
        let rests = self.fault(now, hold);
        self.has_room(now, hold.provider);
        if rests {
            self.fill_limited(now);
        }
    }

    /// Tells a provider, which may get others, to stop working on a job.
    fn stop(&mut self, now: Instant, id: JobId, hold: Hold, reason: CancelReason) {
        if let Some(provider) = self.providers.get_mut(hold.provider) {
            provider.canceled(now);
        }
        self.cancel(id, hold.provider, reason);
    }

    /// Why the job is not accepted, as far as that does not depend on the queue.
    fn refusal(&self, spec: &JobSpec) -> Option<Ending> {
        if self.stopping {
            return Some(Ending::ShuttingDown);
        }
        let serving = self.providers.of(&spec.scope, &spec.model);
        let meant = serving.filter(|(id, provider)| {
            spec.pinned.is_none_or(|pinned| pinned == *id && !provider.is_draining())
        });
        match meant.map(|(_, provider)| provider.max_size).max() {
            None if spec.known && spec.pinned.is_none() => None,
            None => Some(Ending::NoProvider),
            Some(limit) if limit < spec.size => Some(Ending::TooLarge { limit }),
            Some(_) => None,
        }
    }

    fn arm_idle(&mut self, id: JobId, since: Instant) {
        self.timers.arm(Timer::Job(id), since, self.config.idle_timeout, "idle time-out");
    }

    /// Moves a job at a provider on to another phase, if it is in the one expected.
    fn set_phase(&mut self, id: JobId, from: Phase, to: Phase) -> bool {
        match self.jobs.get_mut(&id).map(|job| &mut job.state) {
            Some(State::Held(hold)) if hold.phase == from => {
                hold.phase = to;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        Config, Input, Offer,
        fixture::{Bench, SECOND, assign, cancel, end, job, offer, provider, spec},
    };

    fn progress(number: u128, at: Instant, waiting: Waiting) -> Input {
        Input::Progress { job: job(number), at, waiting }
    }

    fn sized(number: u128, size: u64) -> JobSpec {
        JobSpec { size, ..spec(number) }
    }

    #[test]
    fn unknown_is_refused_and_known_but_absent_waits() {
        let mut bench = Bench::new();
        let unknown = JobSpec { known: false, ..spec(1) };
        assert_eq!(bench.submit(unknown), [end(1, Ending::NoProvider)]);
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.join(1, offer(1)), [assign(2, 1, 0)]);
    }

    #[test]
    fn who_drains_still_counts_as_serving() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.drain(1, SECOND);
        assert_eq!(bench.submit(JobSpec { known: false, ..spec(1) }), []);
        assert_eq!(bench.wait(SECOND * 30), [end(1, Ending::QueueTimeout)]);
    }

    #[test]
    fn too_large_for_all_names_the_largest_limit() {
        let mut bench = Bench::new();
        bench.join(1, Offer { max_size: 10, ..offer(1) });
        bench.join(2, Offer { max_size: 20, ..offer(1) });
        assert_eq!(bench.submit(sized(1, 21)), [end(1, Ending::TooLarge { limit: 20 })]);
        assert_eq!(bench.submit(sized(2, 20)), [assign(2, 2, 0)]);
    }

    #[test]
    fn a_full_queue_refuses_but_not_who_can_be_served_at_once() {
        let mut bench = Bench::with(Config { max_queue_len: 2, ..Config::default() });
        bench.join(1, Offer { max_size: 10, ..offer(1) });
        bench.submit(sized(1, 1));
        for (number, key) in [(2, "a"), (3, "b")] {
            assert_eq!(bench.submit(JobSpec { key: key.into(), ..sized(number, 5) }), []);
        }
        let full = end(4, Ending::QueueFull { retry_after: SECOND * 30 });
        assert_eq!(bench.submit(JobSpec { key: "c".into(), ..sized(4, 5) }), [full]);
        bench.finished(1, 1, Verdict::Answered);
        assert_eq!(bench.dispatcher.queue_depth(), 1);
        bench.join(2, offer(2));
        assert_eq!(bench.dispatcher.queue_depth(), 0);
        assert_eq!(bench.submit(sized(5, 50)), [assign(5, 2, 0)]);
    }

    #[test]
    fn a_key_fills_at_most_half_of_the_places_rounded_up() {
        let mut bench = Bench::with(Config { max_queue_len: 5, ..Config::default() });
        for number in 1..=3 {
            assert_eq!(bench.submit(spec(number)), []);
        }
        assert!(matches!(bench.submit(spec(4))[..], [Output::End { .. }]));
        assert_eq!(bench.submit(JobSpec { key: "other".into(), ..spec(5) }), []);
    }

    #[test]
    fn bytes_and_number_of_queues_are_bounded() {
        let config = Config { max_queued_bytes: 10, max_queues: 2, ..Config::default() };
        let mut bench = Bench::with(config);
        assert_eq!(bench.submit(sized(1, 6)), []);
        assert!(matches!(bench.submit(sized(2, 5))[..], [Output::End { .. }]));
        assert!(matches!(bench.submit(sized(3, u64::MAX))[..], [Output::End { .. }]));
        assert_eq!(bench.submit(JobSpec { model: "n".into(), ..sized(4, 4) }), []);
        let third = JobSpec { model: "o".into(), ..sized(5, 0) };
        assert!(matches!(bench.submit(third.clone())[..], [Output::End { .. }]));
        bench.client_gone(4);
        assert_eq!(bench.submit(third), []);
    }

    #[test]
    fn retry_after_follows_service_time_length_and_capacity() {
        let mut bench = Bench::with(Config { max_queue_len: 6, ..Config::default() });
        bench.join(1, offer(2));
        for number in 1..=4 {
            bench.submit(spec(number));
        }
        bench.wait(SECOND * 3);
        bench.finished(1, 1, Verdict::Answered);
        for number in 5..=6 {
            assert_eq!(bench.submit(spec(number)), []);
        }
        // Three wait, each takes 3 s, two are served at a time: 4.5 s, rounded up.
        let full = Ending::QueueFull { retry_after: SECOND * 5 };
        assert_eq!(bench.submit(spec(7)), [end(7, full)]);
    }

    #[test]
    fn the_queue_time_out_counts_waits_only_and_all_of_them() {
        let mut bench = Bench::new();
        bench.submit(spec(1));
        assert_eq!(bench.wait(SECOND * 20), []);
        bench.join(1, offer(1));
        assert_eq!(bench.wait(SECOND * 100), []);
        assert_eq!(bench.leave(1), []);
        assert_eq!(bench.wait(SECOND * 9), []);
        assert_eq!(bench.wait(SECOND), [end(1, Ending::QueueTimeout)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_requeued_job_is_next_and_keeps_its_age() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        let start = bench.now;
        bench.wait(SECOND);
        bench.submit(JobSpec { key: "other".into(), ..spec(2) });
        bench.leave(1);
        assert_eq!(bench.dispatcher.queues().next().map(|queue| queue.oldest), Some(start));
        assert_eq!(bench.join(2, offer(2)), [assign(1, 2, 1), assign(2, 2, 0)]);
    }

    #[test]
    fn a_requeue_ignores_the_bound_of_the_queue() {
        let mut bench = Bench::with(Config { max_queue_len: 1, ..Config::default() });
        bench.join(1, offer(2));
        for number in 1..=3 {
            bench.submit(spec(number));
        }
        assert_eq!(bench.leave(1), []);
        assert_eq!(bench.dispatcher.queue_depth(), 3);
    }

    #[test]
    fn four_losses_are_too_many() {
        let mut bench = Bench::new();
        bench.submit(spec(1));
        for number in 1..=4 {
            let attempt = number as u32 - 1;
            assert_eq!(bench.join(number, offer(1)), [assign(1, number, attempt)]);
            let left = bench.leave(number);
            assert_eq!(left.is_empty(), number < 4);
        }
        bench.assert_no_jobs();
    }

    #[test]
    fn who_declines_once_too_often_is_told() {
        let mut bench = Bench::with(Config { max_requeue_count: 0, ..Config::default() });
        bench.join(1, offer(1));
        bench.submit(spec(1));
        let told = cancel(1, 1, CancelReason::RequeueExhausted);
        let ended = end(1, Ending::RequeueExhausted);
        assert_eq!(bench.finished(1, 1, Verdict::Declined), [told, ended]);
    }

    #[test]
    fn a_failed_job_goes_to_somebody_else_or_ends() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer(1));
        bench.submit(spec(1));
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [assign(1, 2, 1)]);
        let failed = end(1, Ending::ProviderFailed);
        assert_eq!(bench.finished(1, 2, Verdict::Failed), [failed]);
    }

    #[test]
    fn a_declined_job_waits_for_somebody_else() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        assert_eq!(bench.finished(1, 1, Verdict::Declined), []);
        assert_eq!(bench.submit(spec(2)), [assign(2, 1, 0)], "who avoids is in nobody's way");
        assert_eq!(bench.join(2, offer(1)), [assign(1, 2, 1)]);
    }

    #[test]
    fn after_the_head_nothing_is_tried_again() {
        for verdict in [Verdict::Failed, Verdict::Declined] {
            let mut bench = Bench::new();
            bench.join(1, offer(1));
            bench.join(2, offer(1));
            bench.submit(spec(1));
            bench.begun(1);
            assert_eq!(bench.finished(1, 1, verdict), [end(1, Ending::ProviderFailed)]);
        }
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.begun(1);
        assert_eq!(bench.leave(1), [end(1, Ending::ProviderLost)]);
    }

    #[test]
    fn the_request_time_out_runs_from_each_assignment_to_the_head() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.wait(SECOND * 200);
        bench.leave(1);
        bench.join(2, offer(1));
        assert_eq!(bench.wait(SECOND * 299), []);
        let told = cancel(1, 2, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND), [told, end(1, Ending::RequestTimeout)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn at_the_idle_deadline_the_driver_is_asked_once() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.begun(1);
        let asked = Output::AskProgress { job: job(1) };
        assert_eq!(bench.wait(SECOND * 900), std::slice::from_ref(&asked));
        let moved = bench.now - SECOND * 100;
        assert_eq!(bench.input(progress(1, moved, Waiting::Provider)), []);
        assert_eq!(bench.input(progress(1, bench.now - SECOND * 500, Waiting::Provider)), []);
        assert_eq!(bench.wait(SECOND * 199), []);
        assert_eq!(bench.wait(SECOND), [asked]);
        let told = cancel(1, 1, CancelReason::Timeout);
        let outputs = bench.input(progress(1, moved, Waiting::Provider));
        assert_eq!(outputs, [told, end(1, Ending::IdleTimeout)]);
    }

    #[test]
    fn a_consumer_that_does_not_read_is_no_fault_of_the_provider() {
        let config = Config { faults_to_rest: 1, ..Config::default() };
        for (waiting, rests) in [(Waiting::Client, false), (Waiting::Provider, true)] {
            let mut bench = Bench::with(config.clone());
            bench.join(1, offer(1));
            bench.submit(spec(1));
            bench.begun(1);
            let start = bench.now;
            bench.wait(SECOND * 300);
            let outputs = bench.input(progress(1, start, waiting));
            let stalled = end(1, Ending::ClientStalled);
            assert_eq!(outputs.contains(&stalled), waiting == Waiting::Client);
            let view = bench.dispatcher.providers().next().unwrap();
            assert_eq!((view.in_flight, view.resting_until.is_some()), (0, rests));
        }
    }

    #[test]
    fn a_consumer_that_leaves_frees_what_its_job_had() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        for number in 1..=3 {
            bench.submit(spec(number));
        }
        assert_eq!(bench.client_gone(2), []);
        let told = cancel(1, 1, CancelReason::ClientDisconnect);
        assert_eq!(bench.client_gone(1), [told, assign(3, 1, 0)]);
        bench.begun(3);
        assert_eq!(bench.client_gone(3), [cancel(3, 1, CancelReason::ClientDisconnect)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn late_and_foreign_inputs_are_ignored() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        assert_eq!(bench.submit(spec(1)), []);
        assert_eq!(bench.finished(1, 2, Verdict::Answered), []);
        assert_eq!(bench.begun(9), []);
        assert_eq!(bench.client_gone(9), []);
        assert_eq!(bench.leave(9), []);
        assert_eq!(bench.join(1, offer(9)), []);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        assert_eq!(bench.input(progress(1, bench.now, Waiting::Client)), []);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_pinned_job_goes_there_or_nowhere() {
        let pinned = |number, to| JobSpec { pinned: Some(provider(to)), ..spec(number) };
        let mut bench = Bench::new();
        assert_eq!(bench.submit(pinned(1, 1)), [end(1, Ending::NoProvider)]);
        bench.join(1, offer(1));
        bench.join(2, offer(1));
        assert_eq!(bench.submit(pinned(2, 2)), [assign(2, 2, 0)]);
        assert_eq!(bench.submit(pinned(3, 2)), []);
        assert_eq!(bench.submit(spec(4)), [assign(4, 1, 0)], "pinned jobs are in nobody's way");
        assert_eq!(bench.finished(2, 2, Verdict::Answered), [assign(3, 2, 0)]);
        assert_eq!(bench.submit(pinned(5, 2)), []);
        let lost = [5, 3].map(|number| end(number, Ending::ProviderLost));
        assert_eq!(bench.leave(2), lost);
        assert_eq!(bench.submit(pinned(6, 1)), []);
        assert_eq!(bench.drain(1, SECOND), [end(6, Ending::ProviderLost)]);
        assert_eq!(bench.submit(pinned(7, 1)), [end(7, Ending::NoProvider)]);
    }

    #[test]
    fn a_deadline_too_far_away_is_none() {
        let far = Duration::MAX;
        let mut bench = Bench::with(Config {
            queue_timeout: far,
            request_timeout: far,
            idle_timeout: far,
            ..Config::default()
        });
        bench.submit(spec(1));
        bench.join(1, offer(1));
        bench.begun(1);
        assert_eq!(bench.dispatcher.poll_timeout(), None);
    }
}
