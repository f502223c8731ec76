//! Retries of a job, at another provider or in another shape.

use std::{cell::OnceCell, time::Instant};

use base::{JobId, ProviderId};

use super::{Dispatcher, warm::Warmth};
use crate::{
    input::Verdict,
    job::{Break, Demand, Hold, Job},
    output::{CancelReason, Ending},
};

/// How often a job is retried, besides its requeues, because a provider turns out not to serve the
/// endpoint. Each retry corrects the record of that provider's endpoints, so only providers that
/// keep changing them, or a crowd of new ones, reach this limit.
const MAX_UNSERVED: u32 = 100;

impl Dispatcher {
    /// Whether another provider could take a job that its provider declines or fails now: one that
    /// serves the job's model, now or once it is free, or one that serves a later model of the job.
    pub fn has_alternative(&self, job: JobId) -> bool {
        let Some((job, hold)) = self.unbegun(job) else { return false };
        self.has_other_provider(job, hold.provider) || self.has_served_fallback(job)
    }

    /// Whether another provider is free now for a job whose provider is overloaded. It must serve
    /// the job's model or a later one.
    pub fn has_idle_alternative(&self, now: Instant, job: JobId) -> bool {
        let Some((job, hold)) = self.unbegun(job) else { return false };
        self.models_to_idle(now, job, hold.provider).is_some()
    }

    /// A job that has not begun, and the provider that has it.
    fn unbegun(&self, job: JobId) -> Option<(&Job, Hold)> {
        let job = self.jobs.get(&job).filter(|_| !self.stopping)?;
        Some((job, job.hold().filter(|hold| !hold.begun())?))
    }

    /// The number of models to skip to one with a free provider. For the present model this must be
    /// another provider; for a later model the present one counts too.
    fn models_to_idle(&self, now: Instant, job: &Job, present: ProviderId) -> Option<usize> {
        let is_idle = |demand| self.somebody_is_idle(now, demand);
        if job.may_be_requeued(&self.config) && is_idle(job.demand().after(present)) {
            return Some(0);
        }
        let mut later = job.targets_left().iter().take(job.targets_while_busy());
        later.position(|target| is_idle(job.demand_for(target))).map(|before| before + 1)
    }

    fn somebody_is_idle(&self, now: Instant, demand: Demand<'_>) -> bool {
        let all = self.providers.only_limited(demand);
        let (awaited, warmth) = (OnceCell::new(), Warmth::default());
        let is_awaited = |most| self.providers.is_best_awaited(demand, most, &awaited);
        self.providers.open_to(demand).any(|(id, provider)| {
            !provider.is_out()
                && (all || provider.health.may_take())
                && self.waits_until(now, demand, (id, provider), &warmth, is_awaited).is_none()
        })
    }

    /// Handles a job whose provider left, or was drained, before the job's end. The caller must
    /// call `place` afterwards. A pinned job's fallbacks are for the same provider, so they are
    /// lost too. If the server is stopping, the provider left because of that.
    pub(super) fn lost(&mut self, now: Instant, job: Job, hold: Hold) {
        if self.stopping {
            self.end(job.id(), Ending::ShuttingDown);
        } else if hold.begun() {
            self.break_off(now, job, hold, Break::Lost);
        } else if job.spec.pinned.is_some() {
            self.end(job.id(), Ending::ProviderLost);
        } else {
            self.requeue(now, job, None);
        }
    }

    /// Handles a job that its provider failed or declined.
    pub(super) fn not_answered(&mut self, now: Instant, mut job: Job, hold: Hold, how: Verdict) {
        let id = job.id();
        if hold.begun() {
            self.break_off(now, job, hold, Break::Failed);
            return self.place(now, id);
        }
        job.avoided.push(hold.provider);
        // A pinned job has no other provider to wait for. For a declined job, another provider may
        // still join.
        let failed = matches!(how, Verdict::Failed | Verdict::ModelFailed);
        let hopeless = failed || job.spec.pinned.is_some();
        if job.spec.lent && !failed {
            // The job's home sends it to another provider.
            return self.end(id, Ending::NotLent);
        }
        if hopeless && self.nobody_is_able(&job) {
            self.unmet(now, job, Ending::ProviderFailed);
        } else {
            self.requeue(now, job, Some(hold.provider));
        }
        self.place(now, id);
    }

    /// Handles an overloaded provider's job: another provider takes it only if one is free now.
    pub(super) fn overloaded(&mut self, now: Instant, mut job: Job, hold: Hold) {
        let idle = self.models_to_idle(now, &job, hold.provider);
        let Some(models_on) = idle.filter(|_| !hold.begun() && !self.stopping) else {
            return self.not_answered(now, job, hold, Verdict::Failed);
        };
        let id = job.id();
        if models_on == 0 {
            job.avoided.push(hold.provider);
            job.requeued += 1;
        } else {
            job.go_on(models_on);
        }
        self.enqueue(now, job);
        self.place(now, id);
    }

    /// Handles a job whose provider does not serve the requested shape. If the provider's known
    /// endpoints did not shrink, the same request would follow, so this counts as declined.
    pub(super) fn unserved(&mut self, now: Instant, mut job: Job, hold: Hold) {
        if hold.begun() || job.unserved >= MAX_UNSERVED || !self.serves_less(hold) {
            return self.not_answered(now, job, hold, Verdict::Declined);
        }
        let id = job.id();
        job.unserved += 1;
        if self.nobody_is_able(&job) {
            self.unmet(now, job, Ending::NotServed);
        } else {
            self.try_again(now, job);
        }
        self.place(now, id);
    }

    /// Requeues the job, unless its limit is reached. The caller must call `place` afterwards.
    /// `holder` is the provider that still has the job, if it has to be told when the job is not
    /// requeued.
    pub(super) fn requeue(&mut self, now: Instant, mut job: Job, holder: Option<ProviderId>) {
        if self.stopping || job.may_be_requeued(&self.config) {
            job.requeued += 1;
            return self.try_again(now, job);
        }
        if let Some(provider) = holder {
            self.cancel(job.id(), provider, CancelReason::RequeueExhausted);
        }
        self.unmet(now, job, Ending::RequeueExhausted);
    }

    pub(super) fn try_again(&mut self, now: Instant, mut job: Job) {
        if self.stopping {
            return self.end(job.id(), Ending::ShuttingDown);
        }
        if let Some(models_on) = self.better_served(&job) {
            job.go_on(models_on);
        }
        self.enqueue(now, job);
    }

    pub(super) fn nobody_is_able(&self, job: &Job) -> bool {
        self.providers.able(job.demand()).next().is_none()
    }

    /// Whether no provider is able except this one.
    pub(super) fn nobody_else_is_able(&self, job: &Job, one: ProviderId) -> bool {
        self.providers.able(job.demand()).all(|(id, _)| id == one)
    }

    /// Whether the provider's known endpoints are fewer than when it got the job.
    fn serves_less(&self, hold: Hold) -> bool {
        let provider = self.providers.get(hold.provider);
        provider.is_some_and(|provider| !hold.endpoints.is_within(provider.endpoints))
    }
}

#[cfg(test)]
mod tests {
    use base::{Endpoint, Endpoints};

    use super::*;
    use crate::{
        Config, Input, JobSpec, Offer,
        fixture::{
            Bench, SECOND, assign, assign_as, assign_for, cancel, end, job, offer, offer_of,
            or_else, provider, spec,
        },
    };

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
    fn the_last_decline_is_told() {
        let mut bench = Bench::with(Config { max_requeue_count: 0, ..Config::default() });
        bench.join(1, offer(1));
        bench.submit(spec(1));
        let cancelled = cancel(1, 1, CancelReason::RequeueExhausted);
        let ended = end(1, Ending::RequeueExhausted);
        assert_eq!(bench.finished(1, 1, Verdict::Declined), [cancelled, ended]);
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
    fn a_declined_job_has_an_alternative_while_somebody_else_could_be_asked() {
        let mut bench = Bench::with(Config { max_requeue_count: 1, ..Config::default() });
        let has = |bench: &Bench, number| bench.dispatcher.has_alternative(job(number));
        bench.join(1, offer(1));
        bench.submit(spec(1));
        assert!(!has(&bench, 1), "nobody else");
        bench.join(2, offer(1));
        bench.submit(spec(2));
        assert!(has(&bench, 1), "one that is busy");
        bench.submit(spec(3));
        assert!(!has(&bench, 3), "it waits");
        assert_eq!(bench.finished(1, 1, Verdict::Declined), [assign(3, 1, 0)]);
        bench.finished(2, 2, Verdict::Answered);
        assert!(!has(&bench, 1), "it avoids the one, and is at the other");
        bench.join(4, offer(1));
        assert!(!has(&bench, 1), "it was requeued as often as it may be");
        assert!(has(&bench, 3));
        bench.begun(3);
        assert!(!has(&bench, 3), "it has begun");
        bench.join(5, offer_of(&["n"]));
        bench.join(6, offer_of(&["o"]));
        bench.submit(JobSpec { model: "o".into(), ..or_else(4, &["n"]) });
        assert!(has(&bench, 4), "of its next model");
    }

    #[test]
    fn an_overloaded_providers_job_goes_to_who_is_free_before_it_waits_for_who_is_not() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, Offer { load: 1, ..offer(1) });
        bench.submit(or_else(1, &["n", "o"]));
        assert!(!bench.dispatcher.has_idle_alternative(bench.now, job(1)), "the other is busy");
        bench.join(3, Offer { load: 1, ..offer_of(&["n"]) });
        bench.join(4, offer_of(&["o"]));
        assert!(bench.dispatcher.has_idle_alternative(bench.now, job(1)), "of the last model");
        let on = assign_for(1, 4, "o", 1);
        assert_eq!(bench.finished(1, 1, Verdict::Overloaded), [on]);
        assert!(!bench.dispatcher.has_idle_alternative(bench.now, job(1)));
        assert_eq!(bench.finished(1, 4, Verdict::Overloaded), [end(1, Ending::ProviderFailed)]);
        bench.submit(or_else(2, &["n"]));
        bench.join(5, offer(1));
        assert_eq!(
            bench.finished(2, 1, Verdict::Overloaded),
            [assign(2, 5, 1)],
            "of its own model"
        );
        bench.begun(2);
        assert!(!bench.dispatcher.has_idle_alternative(bench.now, job(2)), "it has begun");
    }

    #[test]
    fn an_overload_is_a_fault_and_counts_as_a_requeue() {
        let config = Config { faults_to_rest: 1, max_requeue_count: 1, ..Config::default() };
        let mut bench = Bench::with(config);
        for number in 1..=3 {
            bench.join(number, offer(1));
        }
        bench.submit(spec(1));
        assert_eq!(bench.finished(1, 1, Verdict::Overloaded), [assign(1, 2, 1)]);
        let rests = |view: crate::ProviderView<'_>| view.resting_until.is_some();
        assert!(bench.dispatcher.providers().next().is_some_and(rests));
        assert!(!bench.dispatcher.has_idle_alternative(bench.now, job(1)), "it was requeued once");
        let cancelled = cancel(1, 2, CancelReason::RequeueExhausted);
        let over = end(1, Ending::RequeueExhausted);
        assert_eq!(bench.finished(1, 2, Verdict::Overloaded), [cancelled, over]);
    }

    #[test]
    fn a_later_model_is_an_alternative_after_the_last_requeue_too() {
        let mut bench = Bench::with(Config { max_requeue_count: 0, ..Config::default() });
        bench.join(1, offer(1));
        bench.join(2, offer(1));
        bench.submit(or_else(1, &["n"]));
        assert!(!bench.dispatcher.has_alternative(job(1)));
        bench.join(3, offer_of(&["n"]));
        assert!(bench.dispatcher.has_alternative(job(1)));
        let cancelled = cancel(1, 1, CancelReason::RequeueExhausted);
        let on = assign_for(1, 3, "n", 1);
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [cancelled, on]);
    }

    #[test]
    fn a_model_that_does_not_run_is_no_fault_of_its_provider() {
        let mut bench = Bench::new();
        bench.join(1, offer_of(&["m", "n"]));
        for number in 1..20 {
            bench.submit(spec(number));
            let ended = bench.finished(number, 1, Verdict::ModelFailed);
            assert_eq!(ended, [end(number, Ending::ProviderFailed)]);
        }
        bench.submit(spec(20));
        bench.join(2, offer(1));
        assert_eq!(bench.finished(20, 1, Verdict::ModelFailed), [assign(20, 2, 1)]);
    }

    #[test]
    fn after_the_head_nothing_is_tried_again() {
        use Verdict::{Declined, Failed, ModelFailed, Overloaded};
        for verdict in [Failed, ModelFailed, Declined, Overloaded] {
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

    const BOTH: Endpoints = Endpoints::only(Endpoint::ChatCompletions).with(Endpoint::Messages);
    const CHAT: Endpoints = Endpoints::only(Endpoint::ChatCompletions);

    /// A job in the shape of Messages that can be served as a chat completion, too.
    fn either(number: u128) -> JobSpec {
        JobSpec { endpoint: Endpoint::Messages, serve_as: BOTH, ..spec(number) }
    }

    fn serves(number: u64, endpoints: Endpoints) -> Input {
        Input::Endpoints { provider: provider(number), endpoints }
    }

    #[test]
    fn an_unserved_job_comes_again_in_another_shape_at_no_cost() {
        let mut bench = Bench::with(Config { max_requeue_count: 0, ..Config::default() });
        bench.join(1, offer(1));
        bench.submit(either(1));
        assert_eq!(bench.input(serves(1, CHAT)), []);
        let repeat = assign_as(1, 1, "m", CHAT, 1);
        assert_eq!(bench.finished(1, 1, Verdict::Unserved), [repeat]);
        let view = bench.dispatcher.providers().next().unwrap();
        assert_eq!((view.in_flight, view.resting_until), (1, None));
    }

    #[test]
    fn an_unserved_job_ends_when_nobody_has_a_shape_for_it() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.input(serves(1, Endpoints::only(Endpoint::Messages)));
        assert_eq!(bench.finished(1, 1, Verdict::Unserved), [end(1, Ending::NotServed)]);
        bench.join(2, offer_of(&["n"]));
        bench.input(serves(1, CHAT));
        bench.submit(or_else(2, &["n"]));
        bench.input(serves(1, Endpoints::NONE));
        let on = assign_for(2, 2, "n", 1);
        assert_eq!(bench.finished(2, 1, Verdict::Unserved), [on]);
    }

    #[test]
    fn an_unserved_job_whose_provider_takes_nothing_back_was_declined() {
        let mut bench = Bench::with(Config { max_requeue_count: 1, ..Config::default() });
        bench.join(1, offer(1));
        bench.submit(either(1));
        bench.input(serves(1, Endpoints::ASSUMED.with(Endpoint::NodeChat)));
        assert_eq!(bench.finished(1, 1, Verdict::Unserved), [], "avoids the only one");
        assert_eq!(bench.join(2, offer(1)), [assign(1, 2, 1)]);
        let cancelled = cancel(1, 2, CancelReason::RequeueExhausted);
        let over = end(1, Ending::RequeueExhausted);
        assert_eq!(bench.finished(1, 2, Verdict::Unserved), [cancelled, over]);
    }

    #[test]
    fn after_the_head_nothing_is_unserved() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(either(1));
        bench.begun(1);
        bench.input(serves(1, CHAT));
        assert_eq!(bench.finished(1, 1, Verdict::Unserved), [end(1, Ending::ProviderFailed)]);
    }

    #[test]
    fn a_provider_that_keeps_changing_its_word_is_avoided_in_the_end() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(either(1));
        for attempt in 1..=MAX_UNSERVED {
            bench.input(serves(1, CHAT));
            let repeat = bench.finished(1, 1, Verdict::Unserved);
            assert_eq!(repeat, [assign_as(1, 1, "m", CHAT, attempt)]);
            bench.input(serves(1, Endpoints::NONE));
            bench.input(serves(1, Endpoints::ASSUMED));
            let id = job(1);
            bench.dispatcher.jobs.entry(id).and_modify(|job| {
                let hold = job.hold().map(|hold| Hold { endpoints: Endpoints::ASSUMED, ..hold });
                job.state = hold.map_or(job.state, crate::job::JobState::Held);
            });
        }
        bench.input(serves(1, CHAT));
        assert_eq!(bench.finished(1, 1, Verdict::Unserved), []);
        assert_eq!(bench.dispatcher.queue_depth(), 1);
    }

    #[test]
    fn a_provider_of_the_jobs_own_shape_comes_first() {
        let mut bench = Bench::new();
        bench.join(1, Offer { endpoints: CHAT, ..offer(2) });
        bench.join(2, Offer { endpoints: BOTH, ..offer(2) });
        assert_eq!(bench.submit(either(1)), [assign_as(1, 2, "m", BOTH, 0)]);
        assert_eq!(bench.submit(either(2)), [assign_as(2, 2, "m", BOTH, 0)], "however busy");
        assert_eq!(bench.submit(either(3)), [assign_as(3, 1, "m", CHAT, 0)]);
    }

    #[test]
    fn more_endpoints_bring_what_now_fits() {
        let mut bench = Bench::new();
        bench.join(1, Offer { endpoints: BOTH, ..offer(1) });
        bench.submit(spec(1));
        bench.submit(spec(2));
        bench.submit(either(3));
        bench.input(serves(1, Endpoints::only(Endpoint::Messages)));
        let third = assign_as(3, 1, "m", Endpoints::only(Endpoint::Messages), 0);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), [third], "passes what does not fit");
        assert_eq!(bench.finished(3, 1, Verdict::Answered), []);
        assert_eq!(bench.input(serves(1, CHAT)), [assign_as(2, 1, "m", CHAT, 0)]);
    }
}
