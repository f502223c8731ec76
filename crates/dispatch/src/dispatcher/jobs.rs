//! A job's life from its acceptance to its end.

use std::time::{Duration, Instant};

use base::{JobId, ProviderId};

use super::{Dispatcher, links::in_order};
use crate::{
    input::{BlockedOn, JobSpec, Resumable, Verdict},
    job::{Break, Hold, Job, JobState, Phase},
    output::{CancelReason, Ending, Output},
    readiness::Unready,
    timers::Timer,
};

impl Dispatcher {
    pub(super) fn begun(&mut self, now: Instant, id: JobId, resumable: Option<Resumable>) {
        let fresh = self.set_phase(id, Phase::Given, Phase::Begun)
            || self.set_phase(id, Phase::Unbegun, Phase::Begun);
        let Some(hold) = self.jobs.get(&id).and_then(Job::hold).filter(|_| fresh) else { return };
        self.arm_idle(id, now);
        self.note_resumable(id, hold.provider, resumable);
        if self.note_loaded(id, hold.provider) {
            self.fill(now, hold.provider);
        }
        let (woke, is_back) = (self.heard(hold.provider), self.backend_is_there(hold.provider));
        if woke || is_back {
            self.found_again(now, hold.provider);
        }
    }

    pub(super) fn progress(&mut self, now: Instant, id: JobId, at: Instant, waiting: BlockedOn) {
        let idle = now.saturating_duration_since(at) >= self.config.idle_timeout;
        if !self.set_phase(id, Phase::Asked, Phase::Begun) {
            return;
        }
        match waiting {
            _ if !idle => self.arm_idle(id, at.min(now)),
            BlockedOn::Provider => self.timed_out(now, id, Ending::IdleTimeout),
            BlockedOn::Client => {
                let Some((_, hold)) = self.release(id) else { return };
                self.stop(now, id, hold, CancelReason::ClientDisconnect);
                self.end(id, Ending::ClientStalled);
                self.refill(now, hold.provider);
            }
        }
    }

    pub(super) fn complete(&mut self, now: Instant, id: JobId) {
        let mut moves = |from| self.set_phase(id, from, Phase::Complete);
        if moves(Phase::Begun) || moves(Phase::Asked) {
            self.timers.arm(Timer::Job(id), now, self.config.end_timeout, "end of a whole answer");
        }
    }

    /// Handles a job whose answer is complete for its consumer, and which its provider has not
    /// ended in time: it is cancelled there.
    fn complete_due(&mut self, now: Instant, id: JobId) {
        let Some((_, hold)) = self.release(id) else { return };
        self.answered(now, hold, None);
        self.stop(now, id, hold, CancelReason::ClientDisconnect);
        self.refill(now, hold.provider);
    }

    pub(super) fn finished(
        &mut self,
        now: Instant,
        id: JobId,
        by: ProviderId,
        verdict: Verdict,
        tokens: Option<u64>,
    ) {
        let holder = self.jobs.get(&id).and_then(Job::hold).map(|hold| hold.provider);
        if holder != Some(by) {
            return;
        }
        if verdict == Verdict::Answered {
            self.note_loaded(id, by);
        }
        let Some((mut job, hold)) = self.release(id) else { return };
        self.heard(by);
        let verdict = self.verdict_on_rest(&mut job, hold, verdict);
        let is_back = verdict.shows_the_backend() && self.backend_is_there(by);
        let moved = if is_back { self.go_on(now, self.concerned(by)) } else { Vec::new() };
        let rests = match verdict {
            Verdict::Answered => {
                self.answered(now, hold, tokens);
                false
            }
            Verdict::AnsweredWithFault | Verdict::Failed | Verdict::Overloaded => {
                self.fault(now, hold)
            }
            Verdict::Declined | Verdict::Unserved | Verdict::ModelFailed => false,
            Verdict::Unreachable | Verdict::Loading => false,
        };
        match verdict {
            Verdict::Failed | Verdict::ModelFailed | Verdict::Declined => {
                self.not_answered(now, job, hold, verdict);
            }
            Verdict::Overloaded => self.overloaded(now, job, hold),
            Verdict::Unserved => self.unserved(now, job, hold),
            Verdict::Unreachable => self.not_ready(now, job, hold, Unready::Away),
            Verdict::Loading => self.not_ready(now, job, hold, Unready::Loading),
            Verdict::Answered | Verdict::AnsweredWithFault => {}
        }
        self.refill(now, by);
        if rests {
            self.fill_limited(now);
        }
        if is_back {
            self.place_all(now, moved);
            self.note_change(now, by);
        }
    }

    pub(super) fn client_gone(&mut self, now: Instant, id: JobId) {
        if let Some((_, hold)) = self.release(id) {
            self.stop(now, id, hold, CancelReason::ClientDisconnect);
            self.refill(now, hold.provider);
        } else {
            self.unqueue(id);
        }
    }

    /// Ends all matching jobs: first waiting ones, then those at providers, oldest first. Only then
    /// are the slots given to other jobs, so that no matching job gets one.
    pub(super) fn end_all(
        &mut self,
        now: Instant,
        ending: &Ending,
        such: impl Fn(&JobSpec) -> bool,
    ) {
        let those = || self.jobs.values().filter(|job| such(&job.spec));
        let waiting = in_order(those().filter(|job| job.hold().is_none()));
        let held = in_order(those().filter(|job| job.hold().is_some()));
        for id in waiting {
            self.unqueue(id);
            self.end(id, ending.clone());
        }
        let mut freed = Vec::new();
        for id in held {
            let Some((_, hold)) = self.release(id) else { continue };
            self.stop(now, id, hold, CancelReason::ClientDisconnect);
            self.end(id, ending.clone());
            freed.push(hold.provider);
        }
        freed.into_iter().for_each(|provider| self.refill(now, provider));
    }

    /// Handles the job's deadline.
    pub(super) fn job_due(&mut self, now: Instant, id: JobId) {
        match self.jobs.get(&id).map(|job| job.state) {
            Some(JobState::Queued { served, .. }) => self.wait_due(now, id, served),
            Some(JobState::Held(hold @ Hold { phase: Phase::Given, .. })) => {
                self.unacknowledged(now, id, hold);
            }
            Some(JobState::Held(Hold { phase: Phase::Unbegun, .. })) => {
                self.timed_out(now, id, Ending::RequestTimeout);
            }
            Some(JobState::Held(Hold { phase: Phase::Complete, .. })) => self.complete_due(now, id),
            Some(JobState::Held(_)) => {
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
        let job = self.jobs.remove(&id)?;
        let load_ended = self.providers.change(hold.provider, |provider| provider.release(&job));
        self.load_ended |= load_ended == Some(true);
        Some((job, hold))
    }

    /// Takes the job out of its queue and out of the dispatcher.
    pub(super) fn unqueue(&mut self, id: JobId) -> Option<Job> {
        self.timers.disarm(Timer::Job(id));
        let job = self.jobs.remove(&id)?;
        self.queues.remove(&job);
        Some(job)
    }

    /// Handles a provider that took too long. Before the head, the job may move to another model;
    /// in the middle of the answer it ends, unless another provider goes on with it.
    pub(super) fn timed_out(&mut self, now: Instant, id: JobId, ending: Ending) {
        let Some((mut job, hold)) = self.release(id) else { return };
        self.stop(now, id, hold, CancelReason::Timeout);
        let rests = self.fault(now, hold);
        if hold.begun() {
            self.break_off(now, job, hold, Break::Silent);
        } else if job.broken_off.is_some() {
            job.avoided.push(hold.provider);
            self.requeue(now, job, None);
        } else {
            self.unmet(now, job, ending);
        }
        self.place(now, id);
        self.refill(now, hold.provider);
        if rests {
            self.fill_limited(now);
        }
    }

    /// Frees the slot of a cancelled job at a provider that lingers: the provider has ended the
    /// job, or the time limit has passed.
    pub(super) fn ceased(&mut self, now: Instant, by: ProviderId, id: JobId) {
        self.timers.disarm(Timer::Linger(by, id));
        if self.providers.change(by, |provider| provider.lingering.remove(&id)) == Some(true) {
            self.refill(now, by);
        }
    }

    /// Tells a provider to stop working on a job and frees its slot for others.
    pub(super) fn stop(&mut self, now: Instant, id: JobId, hold: Hold, reason: CancelReason) {
        let by = hold.provider;
        if self.providers.change(by, |provider| provider.canceled(now, id)) == Some(true) {
            let longest = self.config.request_timeout;
            self.timers.arm(Timer::Linger(by, id), now, longest, "end of a cancelled job");
        }
        self.cancel(id, by, reason);
    }

    fn arm_idle(&mut self, id: JobId, since: Instant) {
        self.timers.arm(Timer::Job(id), since, self.config.idle_timeout, "idle time-out");
    }

    pub(super) fn arm_request(&mut self, id: JobId, since: Instant) {
        self.timers.arm(Timer::Job(id), since, self.config.request_timeout, "request time-out");
    }

    /// Waits for an acknowledgement, but no longer than what is left of the request time-out.
    pub(super) fn arm_acknowledgement(&mut self, now: Instant, id: JobId, left: Duration) {
        let wait = self.config.acknowledge_timeout.min(left);
        self.timers.arm(Timer::Job(id), now, wait, "acknowledgement time-out");
    }

    /// Moves a job at a provider to another phase, if it is in the expected one.
    pub(super) fn set_phase(&mut self, id: JobId, from: Phase, to: Phase) -> bool {
        match self.jobs.get_mut(&id).map(|job| &mut job.state) {
            Some(JobState::Held(hold)) if hold.phase == from => {
                hold.phase = to;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config, Input, Offer,
        fixture::{Bench, SECOND, assign, cancel, end, job, offer, provider, spec},
    };

    fn progress(number: u128, at: Instant, waiting: BlockedOn) -> Input {
        Input::Progress { job: job(number), at, waiting }
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
    fn the_request_time_out_runs_from_each_assignment_to_the_head() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.wait(SECOND * 200);
        bench.leave(1);
        bench.join(2, offer(1));
        assert_eq!(bench.wait(SECOND * 299), []);
        let cancelled = cancel(1, 2, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND), [cancelled, end(1, Ending::RequestTimeout)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn at_the_idle_deadline_the_driver_is_asked_once() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.begun(1);
        let question = Output::AskProgress { job: job(1) };
        assert_eq!(bench.wait(SECOND * 900), std::slice::from_ref(&question));
        let moved = bench.now - SECOND * 100;
        assert_eq!(bench.input(progress(1, moved, BlockedOn::Provider)), []);
        assert_eq!(bench.input(progress(1, bench.now - SECOND * 500, BlockedOn::Provider)), []);
        assert_eq!(bench.wait(SECOND * 199), []);
        assert_eq!(bench.wait(SECOND), [question]);
        let cancelled = cancel(1, 1, CancelReason::Timeout);
        let outputs = bench.input(progress(1, moved, BlockedOn::Provider));
        assert_eq!(outputs, [cancelled, end(1, Ending::IdleTimeout)]);
    }

    #[test]
    fn a_consumer_that_does_not_read_is_no_fault_of_the_provider() {
        let config = Config { faults_to_rest: 1, ..Config::default() };
        for (waiting, rests) in [(BlockedOn::Client, false), (BlockedOn::Provider, true)] {
            let mut bench = Bench::with(config.clone());
            bench.join(1, offer(1));
            bench.submit(spec(1));
            bench.begun(1);
            let start = bench.now;
            bench.wait(SECOND * 300);
            let outputs = bench.input(progress(1, start, waiting));
            let stalled = end(1, Ending::ClientStalled);
            assert_eq!(outputs.contains(&stalled), waiting == BlockedOn::Client);
            let view = bench.dispatcher.providers().next().unwrap();
            assert_eq!((view.in_flight, view.resting_until.is_some()), (0, rests));
        }
    }

    #[test]
    fn new_delays_count_from_the_next_deadline_on() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        bench.submit(spec(1));
        let half = Config { request_timeout: SECOND * 150, ..Config::default() };
        bench.dispatcher.configure(half);
        bench.submit(spec(2));
        let ended = |outputs: &[Output]| -> Vec<u128> {
            let is_end = |number: &u128| {
                outputs.iter().any(|output| {
                matches!(output, Output::End { job: ended, .. } if *ended == job(*number))
            })
            };
            [1, 2].into_iter().filter(is_end).collect()
        };
        let outputs = bench.wait(SECOND * 150);
        assert_eq!(ended(&outputs), [2]);
        let outputs = bench.wait(SECOND * 150);
        assert_eq!(ended(&outputs), [1]);
    }

    #[test]
    fn a_provider_has_a_moment_to_end_an_answer_that_is_complete() {
        let complete = |number| Input::Complete { job: job(number) };
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.submit(spec(2));
        assert_eq!(bench.input(complete(1)), [], "it has not begun");
        assert_eq!(bench.wait(SECOND * 2), []);
        bench.begun(1);
        assert_eq!(bench.input(complete(1)), []);
        assert_eq!(bench.wait(SECOND), []);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), [assign(2, 1, 0)]);
        bench.begun(2);
        bench.submit(spec(3));
        bench.wait(SECOND * 300);
        assert_eq!(bench.input(complete(2)), []);
        let cancelled = cancel(2, 1, CancelReason::ClientDisconnect);
        assert_eq!(bench.wait(SECOND * 2), [cancelled, assign(3, 1, 0)]);
        assert!(bench.dispatcher.providers().next().unwrap().resting_until.is_none());
        bench.finished(3, 1, Verdict::Answered);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_consumer_that_leaves_frees_what_its_job_had() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        for number in 1..=3 {
            bench.submit(spec(number));
        }
        assert_eq!(bench.client_gone(2), []);
        let cancelled = cancel(1, 1, CancelReason::ClientDisconnect);
        assert_eq!(bench.client_gone(1), [cancelled, assign(3, 1, 0)]);
        bench.begun(3);
        assert_eq!(bench.client_gone(3), [cancel(3, 1, CancelReason::ClientDisconnect)]);
        bench.assert_no_jobs();
    }

    fn lingering(max_concurrent: u32) -> Offer {
        Offer { lingers: true, ..offer(max_concurrent) }
    }

    fn ceased(number: u128, at: u64) -> Input {
        Input::Ceased { job: job(number), provider: provider(at) }
    }

    #[test]
    fn a_slot_is_taken_until_a_provider_that_lingers_has_ceased() {
        let mut bench = Bench::new();
        bench.join(1, lingering(2));
        for number in 1..=4 {
            bench.submit(spec(number));
        }
        let cancelled = |number| cancel(number, 1, CancelReason::ClientDisconnect);
        assert_eq!(bench.client_gone(1), [cancelled(1)]);
        bench.begun(2);
        assert_eq!(bench.client_gone(2), [cancelled(2)]);
        let view = bench.dispatcher.providers().next().unwrap();
        assert_eq!((view.in_flight, view.lingering), (0, 2));
        assert_eq!(bench.input(ceased(2, 1)), [assign(3, 1, 0)]);
        assert_eq!(bench.input(ceased(2, 1)), [], "once");
        assert_eq!(bench.input(ceased(9, 1)), []);
        assert_eq!(bench.input(ceased(1, 9)), []);
        assert_eq!(bench.input(ceased(3, 1)), [], "it was not cancelled");
        assert_eq!(bench.input(ceased(1, 1)), [assign(4, 1, 0)]);
    }

    #[test]
    fn a_provider_that_never_says_that_it_has_ceased_has_its_slot_back_in_the_end() {
        let mut bench = Bench::new();
        bench.join(1, lingering(1));
        bench.submit(spec(1));
        bench.client_gone(1);
        assert_eq!(bench.wait(SECOND * 299), []);
        bench.submit(spec(2));
        assert_eq!(bench.wait(SECOND), [assign(2, 1, 0)]);
        assert_eq!(bench.client_gone(2), [cancel(2, 1, CancelReason::ClientDisconnect)]);
        bench.leave(1);
        assert_eq!(bench.dispatcher.poll_timeout(), None, "one that left is waited for no more");
    }

    #[test]
    fn a_job_goes_to_whom_it_does_not_have_to_wait_for() {
        let mut bench = Bench::new();
        bench.join(1, lingering(2));
        bench.join(2, lingering(2));
        bench.submit(spec(1));
        bench.client_gone(1);
        for number in [2, 3] {
            let outputs = bench.submit(spec(number));
            assert_eq!(outputs, [assign(number, if number == 2 { 2 } else { 1 }, 0)]);
        }
    }

    #[test]
    fn a_job_that_took_too_long_lingers_too() {
        let mut bench = Bench::new();
        bench.join(1, lingering(1));
        bench.submit(spec(1));
        let cancelled = cancel(1, 1, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND * 300), [cancelled, end(1, Ending::RequestTimeout)]);
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.input(ceased(1, 1)), [assign(2, 1, 0)]);
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
        assert_eq!(bench.input(progress(1, bench.now, BlockedOn::Client)), []);
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

    #[test]
    fn the_slots_of_a_revoked_key_go_to_others() {
        let of = |key: &str, number| JobSpec { key: key.into(), ..spec(number) };
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer(1));
        for number in [1, 2, 3] {
            bench.submit(of("revoked", number));
        }
        bench.begun(1);
        bench.submit(of("other", 4));
        bench.submit(of("revoked", 5));
        let ended = |number| end(number, Ending::Revoked);
        let cancelled = |number, at| cancel(number, at, CancelReason::ClientDisconnect);
        let outputs = bench.input(Input::Revoked { key: "revoked".into() });
        let waiting = [ended(3), ended(5)];
        let held = [cancelled(1, 1), ended(1), cancelled(2, 2), ended(2), assign(4, 1, 0)];
        assert_eq!(outputs, [&waiting[..], &held].concat());
        assert_eq!(bench.input(Input::Revoked { key: "revoked".into() }), []);
    }

    #[test]
    fn the_jobs_of_an_ended_page_session_end_and_no_others_of_its_key() {
        let of = |session: Option<&str>, number| JobSpec {
            page_session: session.map(Into::into),
            ..spec(number)
        };
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        for (session, number) in
            [(Some("gone"), 1), (Some("gone"), 2), (Some("other"), 3), (None, 4)]
        {
            bench.submit(of(session, number));
        }
        let signed_out = || Input::SignedOut { page_session: "gone".into() };
        let ended = |number| end(number, Ending::SignedOut);
        let cancelled = cancel(1, 1, CancelReason::ClientDisconnect);
        assert_eq!(bench.input(signed_out()), [ended(2), cancelled, ended(1), assign(3, 1, 0)]);
        assert_eq!(bench.input(signed_out()), []);
        assert_eq!(bench.finished(3, 1, Verdict::Answered), [assign(4, 1, 0)]);
    }

    #[test]
    fn the_jobs_of_a_closed_scope_end_and_no_others() {
        let of = |scope: &str, number| JobSpec { scope: scope.into(), ..spec(number) };
        let mut bench = Bench::new();
        bench.join(1, Offer { scope: "closed".into(), ..offer(1) });
        bench.join(2, offer(1));
        for number in [1, 2] {
            bench.submit(of("closed", number));
            bench.submit(spec(10 + number));
        }
        let outputs = bench.input(Input::Closed { scope: "closed".into() });
        let ended = |number| end(number, Ending::Closed);
        assert_eq!(outputs, [ended(2), cancel(1, 1, CancelReason::ClientDisconnect), ended(1)]);
        assert_eq!(bench.finished(11, 2, Verdict::Answered), [assign(12, 2, 0)]);
    }
}
