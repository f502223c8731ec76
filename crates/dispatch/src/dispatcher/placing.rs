//! Assigns jobs to providers.

use std::{
    cell::{Cell, OnceCell},
    time::{Duration, Instant},
};

use base::{Endpoints, JobId, ModelName, ProviderId};

use super::{Dispatcher, loading::rank, waiting::waited, warm::Warmth};
use crate::{
    input::JobSpec,
    job::{Demand, Hold, Job, JobState, Phase},
    output::Output,
    provider::Provider,
    route::keep_soonest,
};

/// How many lines of other models can be passed over, in order, in the time of one look-up of a
/// line by name.
const PASSED_OVER: usize = 12;

impl Dispatcher {
    /// Chooses a free provider for the job, if there is one; the caller must then assign the job to
    /// it. O(providers of the model).
    pub(super) fn choose(&mut self, now: Instant, job: &Job) -> Option<ProviderId> {
        self.choose_trying(now, job, self.config.try_slow_every)
    }

    fn choose_trying(&mut self, now: Instant, job: &Job, try_every: u32) -> Option<ProviderId> {
        self.list_candidates(now, job);
        self.fastest.narrow(&mut self.candidates, try_every);
        keep_soonest(&mut self.candidates);
        let first = self.candidates.first()?;
        let position = self.policy.choose(&job.spec, &self.candidates);
        Some(self.candidates.get(position).unwrap_or(first).provider)
    }

    /// Assigns the job, which is in no queue, to a connected provider.
    pub(super) fn assign(&mut self, now: Instant, mut job: Job, provider: ProviderId) {
        let id = job.id();
        self.given += 1;
        let attempt = job.assigned;
        job.assigned = attempt.saturating_add(1);
        // A job that has waited this long counts as looked at, even if this assignment came at the same
        // instant as its look, and before it.
        job.looked |= job.waits.total() >= self.config.queue_timeout;
        let number = self.given;
        let (loads, rests, endpoints, phase) = self
            .providers
            .change(provider, |to| {
                let phase = if to.acknowledges { Phase::Given } else { Phase::Unbegun };
                (to.give(now, &job, number), to.health.rests(), to.endpoints, phase)
            })
            .unwrap_or((false, 0, Endpoints::NONE, Phase::Unbegun));
        if loads {
            self.loading.push(provider);
        }
        let hold = Hold { provider, since: now, endpoints, rests, phase };
        job.state = JobState::Held(hold);
        // A missing acknowledgement shows a sleeping worker long before the request time-out.
        match phase {
            Phase::Given => self.arm_acknowledgement(now, id, self.config.request_timeout),
            _ => self.arm_request(id, now),
        }
        self.policy.placed(&job.spec, provider);
        self.outputs.push_back(Output::Assign {
            job: id,
            provider,
            model: job.spec.model.clone(),
            endpoints,
            attempt,
        });
        self.jobs.insert(id, job);
    }

    /// Assigns waiting jobs to the provider as long as it has room.
    pub(super) fn fill(&mut self, now: Instant, id: ProviderId) {
        while self.give_next(now, id) {}
    }

    /// Finds providers for jobs that were just requeued or moved to another model.
    pub(super) fn place_all(&mut self, now: Instant, jobs: Vec<JobId>) {
        jobs.into_iter().for_each(|job| self.place(now, job));
    }

    /// Finds a provider for one such job. A provider that is free for it first takes the jobs ahead
    /// of it.
    pub(super) fn place(&mut self, now: Instant, id: JobId) {
        while let Some(provider) = self.choose_for_queued(now, id)
            && self.give_next(now, provider)
        {}
    }

    /// Fills providers that rest or are on trial: when a healthy provider leaves, they may be the
    /// last ones for a model.
    pub(super) fn fill_limited(&mut self, now: Instant) {
        for id in self.providers.limited() {
            self.fill(now, id);
        }
    }

    /// The estimated time until the job's queue is empty.
    pub(super) fn retry_after(&self, spec: &JobSpec) -> Duration {
        let serving = self.providers.of(&spec.scope, &spec.model);
        let active = serving.filter(|(_, provider)| {
            !provider.is_draining()
                && spec.serve_as.meets(provider.endpoints)
                && spec.route.reaches(provider.distance)
        });
        let rate: f64 = active.filter_map(|(_, provider)| provider.rate()).sum();
        let len = self.queues.len(&spec.scope, &spec.model).max(1);
        let longest = self.config.queue_timeout.max(Duration::from_secs(1));
        if rate <= 0.0 {
            return longest;
        }
        let estimate = Duration::try_from_secs_f64((len as f64 / rate).ceil().max(1.0));
        estimate.map_or(longest, |estimate| estimate.min(longest))
    }

    /// Assigns the provider its next job, if it has room. A job that waits for another
    /// provider is passed over, and looked at again when its wait ends.
    fn give_next(&mut self, now: Instant, id: ProviderId) -> bool {
        let look = Cell::new(None);
        let next = self.next_for(now, id, &look);
        let Some(job) = next.and_then(|job| self.jobs.remove(&job)) else {
            look.get().into_iter().for_each(|at| self.look_at_load(now, id, at));
            return false;
        };
        self.queues.serve(&job);
        self.assign(now, waited(job, now), id);
        true
    }

    /// Lists the providers that are free for the job and have the best rank: on most routes the
    /// nearest, and of these the ones that serve it in its own shape.
    fn list_candidates(&mut self, now: Instant, job: &Job) {
        let demand = job.demand();
        // If no healthy provider may get the job, those that rest or are on trial may.
        let all = self.providers.only_limited(demand);
        let mut best = u8::MAX;
        self.candidates.clear();
        let mut looks = std::mem::take(&mut self.looks);
        let (awaited, warmth) = (OnceCell::new(), Warmth::default());
        let is_awaited = |most| self.providers.is_best_awaited(demand, most, &awaited);
        for (id, provider) in self.providers.open_to(demand) {
            if !(all || provider.health.may_take()) {
                continue;
            }
            if let Some(at) = self.waits_until(now, demand, (id, provider), &warmth, is_awaited) {
                if provider.look_at.is_none_or(|armed| at < armed) {
                    looks.push((id, at));
                }
                continue;
            }
            let rank = rank(demand, provider);
            if rank < best {
                best = rank;
                self.candidates.clear();
            }
            if rank == best {
                self.candidates.push(provider.candidate(now, id, &job.spec.model));
            }
        }
        looks.drain(..).for_each(|(id, at)| self.look_at_load(now, id, at));
        self.looks = looks;
    }

    fn choose_for_queued(&mut self, now: Instant, id: JobId) -> Option<ProviderId> {
        let job = self.jobs.remove(&id)?;
        let queued = job.hold().is_none();
        // The chosen provider may get another job, so no slow peer is tried here.
        let chosen = if queued { self.choose_trying(now, &job, 0) } else { None };
        self.jobs.insert(id, job);
        chosen
    }

    /// The next job for this provider, if it may get one now. Jobs before it may wait for other
    /// providers; `look` becomes the first time at which one of them no longer waits.
    fn next_for(
        &self,
        now: Instant,
        id: ProviderId,
        look: &Cell<Option<Instant>>,
    ) -> Option<JobId> {
        let provider = self.providers.get(id)?;
        let nothing = self.queues.depth() == 0 || self.stopping;
        if nothing || provider.is_draining() || !provider.is_free() {
            return None;
        }
        let scope = &provider.scope;
        let (awaited, passed) = (Cell::new(None), Cell::new(0));
        let may_go = |demand: Demand<'_>| {
            let is_awaited = |most| self.providers.is_awaited(demand, most, &awaited);
            let warmth = Warmth::after_passing(passed.get());
            let until = self.waits_until(now, demand, (id, provider), &warmth, is_awaited);
            passed.set(passed.get() + u32::from(until.is_some()));
            look.set(look.get().into_iter().chain(until).min());
            until.is_none()
        };
        let first_fit = |model, pin| self.first_fit((id, provider), model, pin, may_go);
        let lines = self.queues.lines(scope, id);
        if provider.is_wildcard() || lines <= PASSED_OVER * provider.models.len() {
            let mut served = self.queues.oldest_first(scope, id);
            return served.find_map(|(model, pin)| first_fit(model, pin));
        }
        let mut served = self.lines_of(id, provider);
        served.sort_unstable();
        served.into_iter().find_map(|(_, model, pin)| first_fit(model, pin))
    }

    /// The lines of a provider that serves far fewer models than jobs wait for.
    fn lines_of<'a>(
        &self,
        id: ProviderId,
        provider: &'a Provider,
    ) -> Vec<(u64, &'a ModelName, Option<ProviderId>)> {
        let pins = |model| [None, Some(id)].map(|pin| (model, pin));
        let lines = provider.models.iter().flat_map(pins);
        let heads = lines.filter_map(|(model, pin)| {
            let line = self.queues.line(&provider.scope, model, pin)?;
            Some((line.head()?, model, pin))
        });
        heads.collect()
    }

    /// The first job of the line that the provider may get. Jobs in shapes that it does not serve
    /// are skipped without a look. Jobs that are too large for it or avoid it are examined one by
    /// one, and those that wait for another provider: O(those before the first that fits).
    fn first_fit(
        &self,
        (id, provider): (ProviderId, &Provider),
        model: &ModelName,
        pin: Option<ProviderId>,
        may_go: impl Fn(Demand<'_>) -> bool,
    ) -> Option<JobId> {
        if !provider.serves(model) {
            return None;
        }
        let line = self.queues.line(&provider.scope, model, pin)?;
        if provider.health.may_take() {
            return self.first(line.in_order(provider.reach()), |demand| {
                demand.fits(id, provider) && may_go(demand)
            });
        }
        let last =
            |demand: Demand<'_>| demand.fits(id, provider) && self.providers.only_limited(demand);
        // If healthy providers together can be sent everything that this one can, only jobs that
        // avoid some of those can be left for it. Such jobs were requeued, so the rest of the line
        // need not be examined.
        if pin.is_none() && self.providers.covered(provider, model) {
            return self.first(line.requeued(provider.reach()), last);
        }
        self.first(line.in_order(provider.reach()), last)
    }

    fn first(
        &self,
        mut jobs: impl Iterator<Item = JobId>,
        fits: impl Fn(Demand<'_>) -> bool,
    ) -> Option<JobId> {
        jobs.find(|id| self.jobs.get(id).is_some_and(|job| fits(job.demand())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config, Offer, Verdict,
        fixture::{Bench, SECOND, assign, assign_for, offer, provider, spec},
    };

    fn of_model(number: u128, model: &str) -> JobSpec {
        JobSpec { model: model.into(), ..spec(number) }
    }

    fn serving(models: &[&str], max_concurrent: u32) -> Offer {
        let models = models.iter().map(|model| ModelName::from(*model)).collect();
        Offer { models, ..offer(max_concurrent) }
    }

    #[test]
    fn single_requests_go_round() {
        let mut bench = Bench::new();
        for number in 1..=3 {
            bench.join(number, offer(1));
        }
        for (number, to) in [(1, 1), (2, 2), (3, 3), (4, 1), (5, 2)] {
            assert_eq!(bench.submit(spec(number)), [assign(number, to, 0)]);
            bench.finished(number, to, Verdict::Answered);
        }
    }

    #[test]
    fn keys_take_turns() {
        let mut bench = Bench::new();
        for number in 1..=4 {
            bench.submit(JobSpec { key: "heavy".into(), ..spec(number) });
        }
        bench.submit(JobSpec { key: "light".into(), ..spec(5) });
        let order = [1, 5, 2, 3, 4].map(|number| assign(number, 1, 0));
        assert_eq!(bench.join(1, offer(9)), order);
    }

    #[test]
    fn the_queue_whose_head_is_oldest_goes_first() {
        for models in [vec!["a", "b", "c", "d"], vec!["*"]] {
            let mut bench = Bench::new();
            let all = [(1, "b"), (2, "a"), (3, "b"), (4, "c"), (5, "x")];
            for (number, model) in all {
                bench.submit(of_model(number, model));
            }
            let count = if models == ["*"] { 5 } else { 4 };
            let order = all.map(|(number, model)| assign_for(number, 1, model, 0));
            let order = order[..count].to_vec();
            assert_eq!(bench.join(1, serving(&models, 9)), order);
        }
    }

    #[test]
    fn few_models_among_many_queues_go_oldest_first_too() {
        let mut bench = Bench::new();
        for (number, model) in [(1, "z"), (2, "b"), (3, "y"), (4, "a"), (5, "x")] {
            bench.submit(of_model(number, model));
        }
        for number in 0..2 * PASSED_OVER as u128 {
            bench.submit(of_model(number + 6, &format!("other-{number}")));
        }
        let order = [(2, "b"), (4, "a")].map(|(number, model)| assign_for(number, 1, model, 0));
        assert_eq!(bench.join(1, serving(&["a", "b"], 9)), order);
    }

    #[test]
    fn a_head_that_does_not_fit_blocks_nobody() {
        let mut bench = Bench::new();
        bench.submit(JobSpec { size: 11, ..spec(1) });
        bench.submit(spec(2));
        bench.submit(JobSpec { key: "other".into(), ..spec(3) });
        let small = Offer { max_size: 10, ..offer(9) };
        assert_eq!(bench.join(1, small), [assign(2, 1, 0), assign(3, 1, 0)]);
        assert_eq!(bench.join(2, offer(9)), [assign(1, 2, 0)]);
    }

    #[test]
    fn scopes_are_apart() {
        let mut bench = Bench::new();
        bench.join(1, Offer { scope: "room".into(), ..offer(1) });
        assert_eq!(bench.submit(spec(1)), []);
        assert_eq!(bench.submit(JobSpec { scope: "room".into(), ..spec(2) }), [assign(2, 1, 0)]);
    }

    #[test]
    fn zero_capacity_counts_as_one() {
        let mut bench = Bench::new();
        bench.join(1, offer(0));
        assert_eq!(bench.submit(spec(1)), [assign(1, 1, 0)]);
        assert_eq!(bench.submit(spec(2)), []);
    }

    #[test]
    fn ten_thousand_in_flight_and_a_hundred_thousand_waiting() {
        let config = Config { max_queue_len: 200_000, ..Config::default() };
        let mut bench = Bench::with(config);
        for number in 1..=10 {
            bench.join(number, offer(1_000));
        }
        for number in 0..110_000_u128 {
            let key = format!("k{}", number % 1_000);
            bench.submit(JobSpec { key: key.as_str().into(), ..spec(number) });
        }
        assert_eq!(bench.dispatcher.in_flight(), 10_000);
        assert_eq!(bench.dispatcher.queue_depth(), 100_000);
        for number in 1..=10 {
            bench.leave(number);
        }
        assert_eq!(bench.dispatcher.queue_depth(), 110_000);
        assert_eq!(bench.wait(SECOND * 30).len(), 110_000);
        bench.assert_no_jobs();
    }

    #[test]
    fn the_policy_hears_of_each_placement() {
        let policy = Box::new(crate::PrefixAffinity::default());
        let mut dispatcher = super::Dispatcher::new(Config::default(), policy);
        let now = Instant::now();
        let affinity = crate::Affinity::of(&[], &[b'x'; 40 * 1024]);
        for number in 1..=2 {
            let join = crate::Input::Join { provider: provider(number), offer: offer(9) };
            dispatcher.handle(now, join);
        }
        for number in 1..=3 {
            let affinity = affinity.clone();
            dispatcher.handle(now, crate::Input::Submit(JobSpec { affinity, ..spec(number) }));
        }
        let outputs: Vec<_> = std::iter::from_fn(|| dispatcher.poll_output()).collect();
        assert_eq!(outputs, [1, 2, 3].map(|number| assign(number, 1, 0)));
    }
}
