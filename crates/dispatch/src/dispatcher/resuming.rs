//! Answers that break off, and that other providers resume.

use std::{collections::BTreeSet, time::Instant};

use base::{JobId, ModelName, ProviderId};

use super::Dispatcher;
use crate::{
    input::{Resumable, Verdict},
    job::{Break, Hold, Job, Phase},
    output::{Ending, Output},
    provider::Provider,
};

impl Dispatcher {
    /// Whether the answer that this job's provider is about to begin could be resumed: by the same
    /// provider later, or by another one that serves the model. O(providers of the model) at most.
    pub fn may_be_resumed(&self, job: JobId) -> bool {
        let Some(job) = self.jobs.get(&job) else { return false };
        let goes_on = |it: &Provider| it.continuing.contains(&job.spec.model);
        let own = job.hold().and_then(|hold| self.providers.get(hold.provider));
        let mut all = self.providers.of(&job.spec.scope, &job.spec.model);
        own.is_some_and(goes_on) || all.any(|(_, it)| goes_on(it))
    }

    /// Records with which models a provider can resume others' answers.
    pub(super) fn continues(&mut self, now: Instant, id: ProviderId, models: Vec<ModelName>) {
        let models = models.into_iter().collect();
        self.note_awaited(id, &models);
        let changed = self.providers.change(id, |provider| {
            let changed = provider.continuing != models;
            provider.continuing = models;
            changed
        });
        if changed == Some(true) {
            self.fill(now, id);
            // If this provider no longer resumes the model, only providers that rest may be left
            // for it.
            self.fill_limited(now);
            self.note_change(now, id);
        }
    }

    /// Notes for the jobs at this provider whether it can resume answers of their model: it may do
    /// so once it is back.
    fn note_awaited(&mut self, id: ProviderId, models: &BTreeSet<ModelName>) {
        let Some(provider) = self.providers.get(id) else { return };
        for id in &provider.jobs {
            if let Some(job) = self.jobs.get_mut(id) {
                job.awaits |= models.contains(&job.spec.model);
            }
        }
    }

    /// The verdict on a provider that was to resume an answer. If no other provider is able, its
    /// failure counts as [`Verdict::Unreachable`]: its machine may have been lost in that moment,
    /// and may be back before the job's time is over. Providers that failed the job before may then
    /// be asked again.
    pub(super) fn verdict_on_rest(&self, job: &mut Job, hold: Hold, verdict: Verdict) -> Verdict {
        let has_failed = matches!(verdict, Verdict::Failed | Verdict::Overloaded);
        if job.broken_off.is_none() || hold.begun() || !has_failed {
            return verdict;
        }
        if !self.nobody_else_is_able(job, hold.provider) {
            return verdict;
        }
        job.avoided.clear();
        Verdict::Unreachable
    }

    /// Records whether other providers may resume a job that has begun.
    pub(super) fn note_resumable(
        &mut self,
        id: JobId,
        by: ProviderId,
        resumable: Option<Resumable>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let provider = self.providers.get(by);
        job.awaits = provider.is_some_and(|it| it.continuing.contains(&job.spec.model));
        job.resumable = resumable;
        job.broken_off = None;
    }

    /// Handles a job whose answer breaks off: it waits for a provider that resumes it, or ends. The
    /// caller must call `place` afterwards. A provider that is to blame is asked again only if no
    /// other one is able.
    pub(super) fn break_off(&mut self, now: Instant, mut job: Job, hold: Hold, how: Break) {
        let (id, ending) = (job.id(), how.ending());
        let Some(resumable) = self.resumable(&job, hold) else { return self.end(id, ending) };
        job.break_off(resumable, how);
        if self.nobody_is_able(&job) && !job.awaits {
            return self.end(id, ending);
        }
        if how != Break::Lost && !self.nobody_else_is_able(&job, hold.provider) {
            job.avoided.push(hold.provider);
        }
        self.outputs.push_back(Output::BrokenOff { job: id, ending });
        self.enqueue(now, job);
    }

    fn resumable(&self, job: &Job, hold: Hold) -> Option<Resumable> {
        let may = !self.stopping
            && job.spec.pinned.is_none()
            && hold.phase != Phase::Complete
            && job.resumes < self.config.max_resumes;
        job.resumable.filter(|_| may)
    }
}

impl Break {
    /// How the job ends if no provider resumes it.
    pub(super) fn ending(self) -> Ending {
        match self {
            Self::Lost => Ending::ProviderLost,
            Self::Failed => Ending::ProviderFailed,
            Self::Silent => Ending::IdleTimeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{Endpoint, Endpoints};

    use super::*;
    use crate::{
        CancelReason, Config, Input, JobSpec, Offer,
        fixture::{
            Bench, SECOND, assign, cancel, end, job, offer, offer_of, or_else, provider, spec,
        },
    };

    fn chat() -> Resumable {
        let endpoint = Endpoint::ChatCompletions;
        Resumable { endpoint, serve_as: Endpoints::only(endpoint) }
    }

    fn begun(number: u128) -> Input {
        Input::Begun { job: job(number), resumable: Some(chat()) }
    }

    fn continues(number: u64) -> Input {
        Input::Continues { provider: provider(number), models: vec!["m".into()] }
    }

    fn broken_off(number: u128, ending: Ending) -> Output {
        Output::BrokenOff { job: job(number), ending }
    }

    /// Provider 1 is in the middle of job 1, and could have gone on with another's answer.
    fn in_the_middle(bench: &mut Bench) {
        bench.join(1, offer(1));
        bench.input(continues(1));
        bench.submit(spec(1));
        bench.input(begun(1));
    }

    #[test]
    fn only_who_goes_on_gets_a_job_that_has_broken_off_and_before_others() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.submit(spec(2));
        bench.wait(SECOND);
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost)]);
        assert_eq!(bench.join(2, offer(1)), [assign(2, 2, 0)], "it does not go on");
        bench.join(3, Offer { load: 1, ..offer(1) });
        bench.submit(spec(3));
        bench.input(continues(3));
        let room = Input::Load { provider: provider(3), load: 0 };
        assert_eq!(bench.input(room), [assign(1, 3, 1)]);
        bench.input(begun(1));
        assert_eq!(bench.finished(1, 3, Verdict::Answered), [assign(3, 3, 0)]);
    }

    #[test]
    fn a_provider_that_learns_to_go_on_gets_what_waits() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.join(2, offer(1));
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost)]);
        assert_eq!(bench.input(continues(2)), [assign(1, 2, 1)]);
    }

    #[test]
    fn it_waits_a_while_and_ends_as_it_would_have_ended() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost)]);
        bench.join(2, Offer { load: 1, ..offer(1) });
        bench.input(continues(2));
        assert_eq!(bench.wait(SECOND * 59), [], "busy or absent, it is the same");
        assert_eq!(bench.wait(SECOND), [end(1, Ending::ProviderLost)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn where_nobody_ever_went_on_it_ends_at_once() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.input(begun(1));
        assert_eq!(bench.leave(1), [end(1, Ending::ProviderLost)]);
        bench.join(2, offer(1));
        bench.join(3, Offer { load: 1, ..offer(1) });
        bench.input(continues(3));
        bench.submit(spec(2));
        bench.input(begun(2));
        assert_eq!(bench.leave(2), [broken_off(2, Ending::ProviderLost)], "another goes on");
    }

    #[test]
    fn what_may_not_be_resumed_ends_at_once() {
        let mut bench = Bench::new();
        bench.join(1, offer(9));
        bench.join(2, offer(9));
        [1, 2].into_iter().for_each(|number| _ = bench.input(continues(number)));
        let pinned = JobSpec { pinned: Some(provider(1)), ..spec(1) };
        assert_eq!(bench.submit(pinned), [assign(1, 1, 0)]);
        bench.input(begun(1));
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [end(1, Ending::ProviderFailed)]);
        assert_eq!(bench.submit(spec(2)), [assign(2, 2, 0)]);
        bench.begun(2);
        assert_eq!(bench.finished(2, 2, Verdict::Failed), [end(2, Ending::ProviderFailed)]);
    }

    #[test]
    fn a_provider_that_failed_it_is_asked_again_only_if_there_is_nobody_else() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        let failed = || broken_off(1, Ending::ProviderFailed);
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [failed(), assign(1, 1, 1)]);
        bench.input(begun(1));
        bench.join(2, offer(1));
        bench.input(continues(2));
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [failed(), assign(1, 2, 2)]);
        assert_eq!(bench.finished(1, 2, Verdict::Failed), [assign(1, 1, 3)], "nobody else is left");
    }

    #[test]
    fn a_backend_that_comes_back_goes_on() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.finished(1, 1, Verdict::Failed);
        assert_eq!(bench.finished(1, 1, Verdict::Unreachable), []);
        assert_eq!(bench.wait(SECOND / 2), [assign(1, 1, 2)]);
        bench.input(begun(1));
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_backend_that_does_not_come_back_is_waited_for_so_long() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        let start = bench.now;
        bench.finished(1, 1, Verdict::Failed);
        bench.finished(1, 1, Verdict::Unreachable);
        let last = loop {
            match &bench.wait(SECOND)[..] {
                [] => {}
                [Output::Assign { .. }] => {
                    assert_eq!(bench.finished(1, 1, Verdict::Unreachable), []);
                }
                last => break last.to_vec(),
            }
        };
        assert_eq!(last, [end(1, Ending::ProviderFailed)]);
        let took = bench.now - start;
        assert!((60..70).contains(&took.as_secs()), "{took:?}: time at a provider is not waiting");
    }

    #[test]
    fn all_that_could_go_on_may_fail_together_and_come_back() {
        let mut bench = Bench::with(Config { max_requeue_count: 0, ..Config::default() });
        in_the_middle(&mut bench);
        for number in [2, 3] {
            bench.join(number, offer(1));
            bench.input(continues(number));
        }
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost), assign(1, 2, 1)]);
        assert_eq!(bench.finished(1, 2, Verdict::Failed), [assign(1, 3, 2)]);
        assert_eq!(bench.leave(3), [], "one has failed it, one has left");
        bench.join(4, offer(1));
        assert_eq!(bench.input(continues(4)), [assign(1, 4, 3)]);
        assert_eq!(bench.finished(1, 4, Verdict::Failed), [assign(1, 2, 4)], "once more");
        bench.input(begun(1));
        assert_eq!(bench.finished(1, 2, Verdict::Answered), []);
    }

    #[test]
    fn it_is_not_requeued_for_ever() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.leave(1);
        for number in 2..=101 {
            bench.join(number, offer(1));
            assert_eq!(bench.input(continues(number)), [assign(1, number, number as u32 - 1)]);
            assert_eq!(bench.leave(number), []);
        }
        bench.join(102, offer(1));
        bench.input(continues(102));
        assert_eq!(bench.leave(102), [end(1, Ending::ProviderLost)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_refusal_of_the_only_one_ends_it_at_once() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.finished(1, 1, Verdict::Failed);
        let failed = end(1, Ending::ProviderFailed);
        assert_eq!(bench.finished(1, 1, Verdict::ModelFailed), [failed]);
    }

    #[test]
    fn one_that_learns_to_go_on_in_the_middle_is_waited_for() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.input(begun(1));
        bench.input(continues(1));
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost)]);
    }

    #[test]
    fn one_on_trial_goes_on_once_no_healthy_one_does() {
        let mut bench = Bench::with(Config { faults_to_rest: 1, ..Config::default() });
        bench.join(2, offer(2));
        bench.input(continues(2));
        bench.submit(spec(9));
        bench.finished(9, 2, Verdict::AnsweredWithFault);
        in_the_middle(&mut bench);
        bench.join(3, Offer { load: 1, ..offer(1) });
        bench.input(continues(3));
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost)]);
        let none = Input::Continues { provider: provider(3), models: Vec::new() };
        assert_eq!(bench.input(none), [assign(1, 2, 1)]);
    }

    #[test]
    fn one_that_never_begins_to_go_on_is_left() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        for number in [2, 3] {
            bench.join(number, offer(1));
            bench.input(continues(number));
        }
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost), assign(1, 2, 1)]);
        let cancelled = cancel(1, 2, CancelReason::Timeout);
        assert_eq!(bench.wait(SECOND * 300), [cancelled, assign(1, 3, 2)]);
    }

    #[test]
    fn a_silent_provider_and_the_end_of_a_drain_break_answers_off() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.join(2, offer(1));
        bench.input(continues(2));
        bench.drain(1, SECOND * 5);
        let cancelled = cancel(1, 1, CancelReason::GracefulShutdown);
        let over = bench.wait(SECOND * 5);
        assert_eq!(over[..2], [cancelled, broken_off(1, Ending::ProviderLost)]);
        assert!(over.contains(&assign(1, 2, 1)), "{over:?}");
        bench.input(begun(1));
        bench.join(3, offer(1));
        bench.input(continues(3));
        assert_eq!(bench.wait(SECOND * 300), [Output::AskProgress { job: job(1) }]);
        let at = bench.now - SECOND * 300;
        let silent = Input::Progress { job: job(1), at, waiting: crate::BlockedOn::Provider };
        let cancelled = cancel(1, 2, CancelReason::Timeout);
        let over = [cancelled, broken_off(1, Ending::IdleTimeout), assign(1, 3, 2)];
        assert_eq!(bench.input(silent), over);
    }

    #[test]
    fn it_stays_with_the_model_that_began_it() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.submit(or_else(2, &["n"]));
        bench.client_gone(1);
        bench.input(Input::Begun { job: job(2), resumable: Some(chat()) });
        bench.join(2, offer_of(&["n"]));
        let models = vec!["n".into()];
        bench.input(Input::Continues { provider: provider(2), models });
        assert_eq!(bench.leave(1), [broken_off(2, Ending::ProviderLost)]);
        assert_eq!(bench.wait(SECOND * 60), [end(2, Ending::ProviderLost)]);
    }

    #[test]
    fn it_goes_on_in_a_shape_that_can() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        let messages = Endpoints::only(Endpoint::Messages);
        bench.join(2, Offer { endpoints: messages, ..offer(1) });
        bench.input(continues(2));
        assert_eq!(bench.leave(1), [broken_off(1, Ending::ProviderLost)]);
        let both = messages.with(Endpoint::ChatCompletions);
        let taught = Input::Endpoints { provider: provider(2), endpoints: both };
        let assigned = bench.input(taught);
        assert!(matches!(assigned[..], [Output::Assign { endpoints, .. }] if endpoints == both));
    }

    #[test]
    fn an_answer_breaks_off_so_often_and_no_more() {
        let mut bench = Bench::with(Config { max_resumes: 2, ..Config::default() });
        in_the_middle(&mut bench);
        for number in 1..=2 {
            assert_eq!(bench.leave(number), [broken_off(1, Ending::ProviderLost)]);
            bench.join(number + 1, offer(1));
            let goes_on = bench.input(continues(number + 1));
            assert_eq!(goes_on, [assign(1, number + 1, number as u32)]);
            bench.input(begun(1));
        }
        assert_eq!(bench.leave(3), [end(1, Ending::ProviderLost)]);
    }

    #[test]
    fn a_server_that_stops_resumes_nothing() {
        let mut bench = Bench::new();
        in_the_middle(&mut bench);
        bench.join(2, offer_of(&["m"]));
        bench.input(continues(2));
        bench.input(Input::Shutdown);
        assert_eq!(bench.leave(1), [end(1, Ending::ShuttingDown)]);
    }
}
