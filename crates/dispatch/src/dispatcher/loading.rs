//! Jobs and the models in the providers' memory: when a job waits for another provider rather than
//! have its model loaded.

use std::{
    cell::{Cell, OnceCell},
    time::{Duration, Instant},
};

use base::{JobId, ProviderId};

use super::Dispatcher;
use crate::{
    input::{Input, Unloaded, Verdict},
    job::{Demand, Job},
    provider::Provider,
    providers::Providers,
    timers::Timer,
    view::Loading,
};

impl Dispatcher {
    /// Records which models a provider does not have in memory.
    pub(super) fn unloaded(&mut self, now: Instant, id: ProviderId, models: Vec<Unloaded>) {
        if self.providers.set_unloaded(now, id, models) {
            self.fill(now, id);
        }
    }

    /// Records that a provider answers with a job's model, so it has the model in memory. Returns
    /// whether that is news; then the caller must fill the provider.
    pub(super) fn note_loaded(&mut self, job: JobId, id: ProviderId) -> bool {
        let model = self.jobs.get(&job).map(|job| &job.spec.model);
        model.is_some_and(|model| self.providers.note_loaded(id, model))
    }

    /// Until when a job waits for others rather than have this free provider load its model; `None`
    /// if it does not wait. It waits for a provider that has the model in memory or is loading it,
    /// is not farther away, and lacks only a free slot. Its waits in all queues together last no
    /// longer than the load would take, nor than the time-outs allow. `is_awaited` says whether
    /// there is such a provider of at most the given rank. It is asked last, since it costs the
    /// most.
    pub(super) fn waits_for_load(
        &self,
        now: Instant,
        demand: Demand<'_>,
        provider: &Provider,
        is_awaited: impl FnOnce(u8) -> bool,
    ) -> Option<Instant> {
        // This is asked for each free provider, and nearly all have all their models in memory.
        if provider.unloaded.is_empty() {
            return None;
        }
        let takes = provider.unloaded.load_time(demand.model)?;
        let until = self.patient_until(now, demand.job, takes)?;
        is_awaited(rank(demand, provider)).then_some(until)
    }

    /// The end of a job's wait, if it waits `most` in all queues together; `None` if it has waited that long already.
    pub(super) fn patient_until(&self, now: Instant, job: &Job, most: Duration) -> Option<Instant> {
        let patience = most.min(self.config.queue_timeout).min(self.config.busy_timeout);
        // A wait of no length would be looked at again at once.
        let left = patience.checked_sub(job.waited(now)).filter(|left| !left.is_zero())?;
        now.checked_add(left)
    }

    /// Arms a look at the jobs that wait while this provider is free, unless an earlier one is
    /// armed.
    pub(super) fn look_at_load(&mut self, now: Instant, id: ProviderId, at: Instant) {
        let sooner = self.providers.change(id, |provider| {
            let sooner = provider.look_at.is_none_or(|armed| at < armed);
            provider.look_at = if sooner { Some(at) } else { provider.look_at };
            sooner
        });
        self.passing.insert(id);
        if sooner == Some(true) {
            let after = at.saturating_duration_since(now);
            self.timers.arm(Timer::Load(id), now, after, Self::LOAD_LOOK);
        }
    }

    /// Handles the deadline that [`Dispatcher::look_at_load`] armed.
    pub(super) fn load_look_due(&mut self, now: Instant, id: ProviderId) {
        self.passing.remove(&id);
        self.providers.change(id, |provider| provider.look_at = None);
        self.fill(now, id);
    }

    /// The reason of the deadline at which a job no longer waits for a provider that has its model
    /// in memory, or that knows its prompt. The job may be gone by then.
    pub const LOAD_LOOK: &str = "end of a wait for a loaded model";

    /// Places jobs that no longer have to wait. With `all`, the providers that they waited for may
    /// be gone or have unloaded the model. Without it, only those whose model another provider has
    /// begun to load. O(the providers that do not have all their models in memory).
    pub(super) fn end_waits(&mut self, now: Instant, all: bool) {
        // Cleared in any case: the note is about this input alone.
        let all = std::mem::take(&mut self.load_ended) || all;
        if all && self.queues.depth() > 0 {
            self.providers.open_with_unloaded().into_iter().for_each(|id| self.fill(now, id));
        }
        // The provider counts as loading the model from now on, so it may get the jobs that waited
        // rather than load it.
        while let Some(id) = self.loading.pop() {
            self.fill(now, id);
        }
    }

    /// The load of a model that a job at a provider waits for.
    pub fn loading(&self, now: Instant, job: JobId) -> Option<Loading> {
        if self.providers.all_loaded() {
            return None;
        }
        let job = self.jobs.get(&job)?;
        let hold = job.hold().filter(|hold| !hold.begun())?;
        let provider = self.providers.get(hold.provider)?;
        let (since, takes) = provider.unloaded.loading(&job.spec.model)?;
        let passed = now.saturating_duration_since(since);
        let left = takes.map(|takes: Duration| takes.saturating_sub(passed));
        Some(Loading { provider: hold.provider, left })
    }
}

impl Providers {
    /// The best rank of the providers that the job would wait for. O(providers of the model); less
    /// if one has rank 0.
    fn best_awaited(&self, demand: Demand<'_>) -> Option<u8> {
        let mut best = None;
        let ranks = self.able(demand).filter(|(_, other)| is_worth_a_wait(demand, other));
        for rank in ranks.map(|(_, other)| rank(demand, other)) {
            if rank == 0 {
                return Some(0);
            }
            best = best.into_iter().chain([rank]).min();
        }
        best
    }

    /// Whether the job would wait for some provider of at most this rank. `best` keeps what was
    /// found for the job. O(providers of the model) the first time.
    pub(super) fn is_best_awaited(
        &self,
        demand: Demand<'_>,
        most: u8,
        best: &OnceCell<Option<u8>>,
    ) -> bool {
        best.get_or_init(|| self.best_awaited(demand)).is_some_and(|best| best <= most)
    }

    /// Whether the job would wait for some provider of at most this rank. `known` is the provider
    /// that an earlier job waits for, and most often the answer for this one too: it is tried
    /// first. O(providers of the model) otherwise.
    pub(super) fn is_awaited(
        &self,
        demand: Demand<'_>,
        most: u8,
        known: &Cell<Option<ProviderId>>,
    ) -> bool {
        let waits =
            |other: &Provider| is_worth_a_wait(demand, other) && rank(demand, other) <= most;
        let same = known.get().and_then(|id| self.able_one(demand, id));
        if same.is_some_and(waits) {
            return true;
        }
        let found = self.able(demand).find(|(_, other)| waits(other));
        // For the next job. Otherwise each queued job would look at every provider.
        known.set(found.map(|(id, _)| id));
        found.is_some()
    }
}

/// Whether the provider lacks nothing but a free slot for the job, and need not load its model.
pub(super) fn is_worth_a_wait(demand: Demand<'_>, provider: &Provider) -> bool {
    provider.is_only_full() && provider.unloaded.load_time(demand.model).is_none()
}

pub(super) fn rank(demand: Demand<'_>, provider: &Provider) -> u8 {
    let native = provider.endpoints.contains(demand.job.spec.endpoint);
    demand.route.rank(provider.distance, native)
}

/// Whether, after this input, a job may wait for no provider any more although another one is free
/// for it.
pub(super) fn may_end_waits(input: &Input) -> bool {
    match input {
        Input::Submit(_) | Input::Acknowledged { .. } | Input::Begun { .. } => false,
        Input::Load { .. } | Input::Complete { .. } => false,
        // The freed slot goes to a job that waited for it. The end of a load is noted separately
        // (`load_ended`).
        Input::ClientGone { .. } => false,
        Input::Finished { verdict, .. } => *verdict != Verdict::Answered,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config, Distance, JobSpec, LeaveReason, Offer, Output,
        fixture::{Bench, SECOND, assign, job, offer, provider, spec},
    };

    /// This provider does not have model `m` in memory.
    fn on_disk(seconds: u32) -> Vec<Unloaded> {
        vec![Unloaded { model: "m".into(), is_loading: false, takes: Some(SECOND * seconds) }]
    }

    /// An offer of `m`, which takes this long to load.
    fn cold(max_concurrent: u32, seconds: u32) -> Offer {
        Offer { unloaded: on_disk(seconds), ..offer(max_concurrent) }
    }

    fn reports(number: u64, models: Vec<Unloaded>) -> Input {
        Input::Unloaded { provider: provider(number), models }
    }

    /// Provider 1 has the model in memory and is full; provider 2 would load it in 8 s.
    fn busy_and_cold() -> Bench {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, cold(2, 8));
        assert_eq!(bench.submit(spec(1)), [assign(1, 1, 0)]);
        bench
    }

    #[test]
    fn one_that_has_the_model_comes_first_then_one_that_loads_it_then_the_fastest() {
        let mut bench = Bench::new();
        let loading = vec![Unloaded { is_loading: true, ..on_disk(60).remove(0) }];
        bench.join(1, cold(1, 9));
        bench.join(2, cold(1, 3));
        bench.join(3, Offer { unloaded: loading, ..offer(1) });
        bench.join(4, offer(1));
        for (number, to) in [(1, 4), (2, 3)] {
            assert_eq!(bench.submit(spec(number)), [assign(number, to, 0)]);
        }
        for (number, to, seconds) in [(3, 2, 3), (4, 1, 9)] {
            assert_eq!(bench.submit(spec(number)), []);
            assert_eq!(bench.wait(SECOND * seconds), [assign(number, to, 0)]);
        }
    }

    #[test]
    fn a_burst_loads_the_model_once() {
        let mut bench = Bench::new();
        bench.join(1, cold(4, 8));
        bench.join(2, cold(4, 8));
        let taken: Vec<_> = (1..=4).flat_map(|number| bench.submit(spec(number))).collect();
        assert_eq!(taken, [1, 2, 3, 4].map(|number| assign(number, 1, 0)));
    }

    #[test]
    fn a_job_waits_for_a_busy_one_no_longer_than_another_would_load() {
        let mut bench = busy_and_cold();
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.wait(SECOND * 7), []);
        assert_eq!(bench.wait(SECOND), [assign(2, 2, 0)]);
        assert_eq!(bench.submit(spec(3)), [assign(3, 2, 0)], "joins the one that loads now");
    }

    #[test]
    fn a_slot_that_becomes_free_in_time_is_taken() {
        let mut bench = busy_and_cold();
        bench.submit(spec(2));
        bench.wait(SECOND * 7);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), [assign(2, 1, 0)]);
        assert_eq!(bench.wait(SECOND * 60), [], "the look is in vain");
    }

    #[test]
    fn whoever_it_waits_for_may_go_or_unload_the_model() {
        let gone = Input::Leave { provider: provider(1), why: LeaveReason::Closed };
        let unloads = reports(1, on_disk(8));
        let paused = Input::Condition { provider: provider(1), speed: None, throttle: 0 };
        let drained = Input::Drain { provider: provider(1), grace: SECOND };
        for event in [gone, unloads, paused, drained] {
            let mut bench = busy_and_cold();
            bench.begun(1);
            bench.submit(spec(2));
            let outputs = bench.input(event.clone());
            assert!(outputs.contains(&assign(2, 2, 0)), "{event:?}: {outputs:?}");
        }
    }

    #[test]
    fn nobody_waits_for_a_load_whose_only_client_has_gone() {
        let mut bench = Bench::new();
        bench.join(1, Offer { lingers: true, ..cold(1, 8) });
        bench.join(2, cold(1, 9));
        assert_eq!(bench.submit(spec(1)), [assign(1, 1, 0)]);
        assert_eq!(bench.submit(spec(2)), [], "waits for the one that loads the model");
        let outputs = bench.client_gone(1);
        assert!(outputs.contains(&assign(2, 2, 0)), "{outputs:?}");
    }

    #[test]
    fn nobody_waits_for_one_that_is_farther_away_or_not_meant() {
        let mut bench = Bench::new();
        bench.join(1, Offer { distance: Distance::Near, ..offer(1) });
        bench.join(2, cold(1, 8));
        let pinned = |to, number| JobSpec { pinned: Some(provider(to)), ..spec(number) };
        assert_eq!(bench.submit(pinned(1, 1)), [assign(1, 1, 0)]);
        assert_eq!(bench.submit(spec(2)), [assign(2, 2, 0)], "the other is near, this one is here");
        bench.finished(2, 2, Verdict::Answered);
        bench.join(3, offer(1));
        assert_eq!(bench.submit(spec(3)), [assign(3, 3, 0)]);
        assert_eq!(bench.submit(pinned(2, 4)), [assign(4, 2, 0)]);
    }

    #[test]
    fn no_wait_is_longer_than_the_time_outs() {
        let config = Config { queue_timeout: SECOND * 5, ..Config::default() };
        let mut bench = Bench::with(config);
        bench.join(1, offer(1));
        bench.join(2, cold(1, u32::MAX));
        bench.submit(spec(1));
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.wait(SECOND * 5), [assign(2, 2, 0)]);
    }

    #[test]
    fn a_failed_load_does_not_make_it_count_as_loading() {
        let mut bench = Bench::new();
        bench.join(1, cold(2, 8));
        bench.join(2, cold(2, 5));
        assert_eq!(bench.submit(spec(1)), [assign(1, 2, 0)]);
        let left = bench.dispatcher.loading(bench.now + SECOND, job(1));
        let (provider, four) = (provider(2), Some(SECOND * 4));
        assert_eq!(left, Some(Loading { provider, left: four }));
        assert_eq!(bench.finished(1, 2, Verdict::Failed), [assign(1, 1, 1)]);
        assert_eq!(bench.submit(spec(2)), [assign(2, 1, 0)], "it is loading now");
        bench.begun(1);
        assert_eq!(bench.dispatcher.loading(bench.now, job(2)), None);
        bench.leave(1);
        assert!(matches!(bench.submit(spec(3))[..], [Output::Assign { .. }]));
        bench.client_gone(3);
    }
}
