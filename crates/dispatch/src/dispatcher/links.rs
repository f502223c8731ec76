//! Joining, changing, draining, resting and leaving of providers; and the server's stop.

use std::time::{Duration, Instant};

use base::{Endpoints, JobId, ModelName, ProviderId};

use super::Dispatcher;
use crate::{
    input::Offer,
    job::{Hold, Job},
    output::{CancelReason, Ending, Output},
    provider::{Drain, Provider},
    timers::Timer,
};

impl Dispatcher {
    pub(super) fn join(&mut self, now: Instant, id: ProviderId, offer: Offer) {
        if self.providers.get(id).is_none() {
            let provider = Provider::new(now, offer);
            let depending = self.depending_on(&provider);
            self.providers.insert(id, provider);
            let moved = self.go_on(now, self.concerned(id));
            self.fill(now, id);
            // Most moved jobs went to this provider. Others wait for one whose backend is being
            // tried again.
            self.place_all(now, moved);
            self.note_all(now, depending);
        }
    }

    pub(super) fn models(
        &mut self,
        now: Instant,
        id: ProviderId,
        models: Vec<ModelName>,
        load: u32,
    ) {
        let Some(provider) = self.providers.get(id) else { return };
        // Jobs for models that it gains and for those that it loses may do better elsewhere.
        let changed = provider.models.iter().chain(&models).cloned().collect();
        let concerned = self.queues.with_fallbacks(&provider.scope, &changed);
        // A list of models is a sign that the backend is there.
        self.backend_is_there(id);
        let before = self.waiting_for_models_of(id);
        self.providers.set_models(id, models);
        let moved = self.go_on(now, concerned);
        self.load(now, id, load);
        self.place_all(now, moved);
        self.fill_limited(now);
        self.note_all(now, before);
        self.note_change(now, id);
    }

    /// Changes a provider's endpoints. With fewer endpoints, a resting provider may become the last
    /// that can serve a waiting job. A job that has neither a provider nor a served fallback then
    /// waits until its time-out, since another provider may join.
    pub(super) fn endpoints(&mut self, now: Instant, id: ProviderId, endpoints: Endpoints) {
        if self.providers.change(id, |provider| provider.endpoints = endpoints).is_some() {
            let moved = self.go_on(now, self.concerned(id));
            self.fill(now, id);
            self.place_all(now, moved);
            self.fill_limited(now);
            self.note_change(now, id);
        }
    }

    pub(super) fn load(&mut self, now: Instant, id: ProviderId, load: u32) {
        self.heard(id);
        if self.providers.change(id, |provider| provider.reports(load, now)).is_some() {
            self.fill(now, id);
        }
    }

    pub(super) fn capacity(&mut self, now: Instant, id: ProviderId, max_concurrent: u32) {
        if self.providers.change(id, |provider| provider.set_capacity(max_concurrent)).is_some() {
            self.fill(now, id);
        }
    }

    /// Starts a drain. A second drain can only shorten the grace.
    pub(super) fn drain(&mut self, now: Instant, id: ProviderId, grace: Duration) {
        let drained = self.providers.change(id, |provider| {
            let before = provider.drain;
            provider.drain = if before == Drain::No { Drain::Draining } else { before };
            (before == Drain::No, provider.drain == Drain::Draining)
        });
        let Some((first, draining)) = drained else { return };
        if draining && self.is_sooner(now, id, grace) {
            self.timers.arm(Timer::Grace(id), now, grace, "end of a drain");
        }
        if first {
            // Jobs pinned to it would wait in vain: it gets no more jobs, and they may go nowhere
            // else.
            self.end_pinned(id);
            let moved = self.go_on(now, self.concerned(id));
            self.refill(now, id);
            self.place_all(now, moved);
            self.fill_limited(now);
            self.note_change(now, id);
        }
    }

    pub(super) fn leave(&mut self, now: Instant, id: ProviderId) {
        self.end_pinned(id);
        let held = self.held_by(id);
        // Ids are not used again after the link ends, so nothing else would ever remove these
        // timers.
        self.timers.disarm(Timer::Grace(id));
        self.timers.disarm(Timer::Rest(id));
        self.timers.disarm(Timer::Backend(id));
        self.timers.disarm(Timer::Load(id));
        let Some(gone) = self.providers.remove(id) else { return };
        gone.lingering.iter().for_each(|job| self.timers.disarm(Timer::Linger(id, *job)));
        let concerned = self.queues.with_fallbacks(&gone.scope, &gone.models);
        let depending = self.depending_on(&gone);
        for job in &held {
            if let Some((job, hold)) = self.release(*job) {
                self.lost(now, job, hold);
            }
        }
        let moved = self.go_on(now, concerned);
        // Lost jobs come before those that never had a provider.
        self.place_all(now, held);
        self.place_all(now, moved);
        self.fill_limited(now);
        self.note_all(now, depending);
    }

    /// Handles the end of a provider's grace: its remaining jobs are requeued, or end with the
    /// server.
    pub(super) fn grace_over(&mut self, now: Instant, id: ProviderId) {
        let held = self.held_by(id);
        for job in &held {
            // While the server stops, no other provider gets them.
            if self.stopping {
                self.end_with_server(*job);
            } else if let Some((job, hold)) = self.release(*job) {
                self.cancel(job.id(), id, CancelReason::GracefulShutdown);
                self.lost(now, job, hold);
            }
        }
        self.retire(id, false);
        self.place_all(now, held);
    }

    pub(super) fn rest_over(&mut self, now: Instant, id: ProviderId) {
        if self.providers.change(id, |provider| provider.health.rested()).is_some() {
            self.fill(now, id);
        }
    }

    /// Stops assigning and ends waiting jobs.
    pub(super) fn shutdown(&mut self) {
        self.stopping = true;
        for job in in_order(self.jobs.values().filter(|job| job.hold().is_none())) {
            self.unqueue(job);
            self.end(job, Ending::ShuttingDown);
        }
    }

    /// Ends every job. Draining providers then hold no jobs, but their drain was not clean.
    pub(super) fn abort(&mut self) {
        self.shutdown();
        for job in in_order(self.jobs.values()) {
            self.end_with_server(job);
        }
        for id in self.providers.ids() {
            self.retire(id, false);
        }
    }

    /// Ends a job at a provider because the server stops.
    fn end_with_server(&mut self, job: JobId) {
        if let Some((_, hold)) = self.release(job) {
            self.cancel(job, hold.provider, CancelReason::ServerShutdown);
            self.end(job, Ending::ShuttingDown);
        }
    }

    /// Handles a slot of the provider that may have become free.
    pub(super) fn refill(&mut self, now: Instant, id: ProviderId) {
        let idle = self.providers.get(id).is_some_and(|provider| provider.jobs.is_empty());
        // A provider that drains is retired after its last job.
        if idle {
            self.retire(id, true);
        }
        self.fill(now, id);
    }

    /// Records a good answer of the provider, with the number of tokens if known.
    pub(super) fn answered(&mut self, now: Instant, hold: Hold, tokens: Option<u64>) {
        let is_healthy = self.providers.change(hold.provider, |provider| {
            provider.took(now.saturating_duration_since(hold.since), tokens);
            provider.health.answered(hold.rests);
            provider.health.is_healthy()
        });
        // A good answer ends a rest before its time.
        if is_healthy == Some(true) {
            self.timers.disarm(Timer::Rest(hold.provider));
        }
    }

    /// Records a fault of the provider. Returns whether it goes to rest: then other providers may
    /// now be the last ones for a model.
    pub(super) fn fault(&mut self, now: Instant, hold: Hold) -> bool {
        let config = &self.config;
        let rest = self
            .providers
            .change(hold.provider, |provider| provider.health.fault(hold.rests, now, config));
        let Some(rest) = rest.flatten() else { return false };
        self.timers.arm(Timer::Rest(hold.provider), now, rest, "end of a rest");
        true
    }

    /// Tells the driver, once, that a draining provider no longer holds any jobs.
    fn retire(&mut self, id: ProviderId, clean: bool) {
        let drains = |provider: &Provider| provider.drain == Drain::Draining;
        if self.providers.get(id).is_some_and(drains) {
            self.providers.change(id, |provider| provider.drain = Drain::Retired);
            self.timers.disarm(Timer::Grace(id));
            self.outputs.push_back(Output::Retire { provider: id, clean });
        }
    }

    fn is_sooner(&self, now: Instant, id: ProviderId, grace: Duration) -> bool {
        let armed = self.timers.deadline(Timer::Grace(id));
        armed.is_none_or(|armed| now.checked_add(grace).is_some_and(|end| end < armed))
    }

    /// Ends the jobs that are pinned to this provider: it gets no more jobs.
    fn end_pinned(&mut self, id: ProviderId) {
        let Some(provider) = self.providers.get(id) else { return };
        let pinned = self.queues.pinned_to(&provider.scope, id);
        for job in in_order(pinned.iter().filter_map(|job| self.jobs.get(job))) {
            self.unqueue(job);
            self.end(job, Ending::ProviderLost);
        }
    }

    /// The jobs at the provider, oldest first.
    fn held_by(&self, id: ProviderId) -> Vec<JobId> {
        let Some(provider) = self.providers.get(id) else { return Vec::new() };
        in_order(provider.jobs.iter().filter_map(|job| self.jobs.get(job)))
    }
}

/// The jobs, oldest first.
pub(super) fn in_order<'a>(jobs: impl Iterator<Item = &'a Job>) -> Vec<JobId> {
    let mut jobs: Vec<_> = jobs.map(|job| (job.seq, job.id())).collect();
    jobs.sort_unstable();
    jobs.into_iter().map(|(_, job)| job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config, Input, JobSpec, Verdict,
        fixture::{Bench, SECOND, assign, assign_for, cancel, end, offer, provider, retire, spec},
    };

    fn models(number: u64, models: &[&str], load: u32) -> Input {
        let models = models.iter().map(|model| ModelName::from(*model)).collect();
        Input::Models { provider: provider(number), models, load }
    }

    /// Sends provider 1, the only one, to rest for 5 s, with jobs 101 to 103.
    fn send_to_rest(bench: &mut Bench) {
        for number in 101..=103 {
            bench.submit(spec(number));
            bench.finished(number, 1, Verdict::AnsweredWithFault);
        }
    }

    #[test]
    fn a_provider_that_takes_more_is_given_more_and_one_that_takes_less_keeps_what_it_has() {
        let capacity = |max_concurrent| Input::Capacity { provider: provider(1), max_concurrent };
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        for number in [2, 3] {
            assert_eq!(bench.submit(spec(number)), []);
        }
        assert_eq!(bench.input(capacity(2)), [assign(2, 1, 0)]);
        assert_eq!(bench.input(capacity(0)), []);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        assert_eq!(bench.finished(2, 1, Verdict::Answered), [assign(3, 1, 0)]);
    }

    #[test]
    fn the_reported_load_moves_with_what_is_given_and_ends() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 2, ..offer(3) });
        assert_eq!(bench.submit(spec(1)), [assign(1, 1, 0)]);
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), [assign(2, 1, 0)]);
        let view = bench.dispatcher.providers().next().unwrap();
        assert_eq!((view.reported_load, view.in_flight), (3, 1));
    }

    #[test]
    fn a_low_report_does_not_hide_our_own_jobs() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.submit(spec(2));
        assert_eq!(bench.input(Input::Load { provider: provider(1), load: 0 }), []);
    }

    #[test]
    fn a_report_that_crosses_a_cancellation_leaves_nobody_idle() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.client_gone(1);
        let report = |load| Input::Load { provider: provider(1), load };
        bench.input(report(1));
        assert_eq!(bench.submit(spec(2)), [assign(2, 1, 0)]);
        bench.input(report(2));
        assert_eq!(bench.finished(2, 1, Verdict::Answered), []);
        assert_eq!(bench.submit(spec(3)), [assign(3, 1, 0)]);
    }

    #[test]
    fn after_a_cancellation_only_what_it_explains_is_not_believed() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 2, ..offer(9) });
        for number in 1..=2 {
            bench.submit(spec(number));
            bench.client_gone(number);
        }
        for (report, believed) in [(2, 2), (4, 2), (5, 3), (1, 1), (3, 1)] {
            bench.input(Input::Load { provider: provider(1), load: report });
            let view = bench.dispatcher.providers().next().unwrap();
            assert_eq!(view.reported_load, believed, "{report}");
        }
        bench.wait(SECOND);
        bench.input(Input::Load { provider: provider(1), load: 3 });
        assert_eq!(bench.dispatcher.providers().next().unwrap().reported_load, 3);
    }

    #[test]
    fn a_load_report_and_new_models_make_room() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 1, ..offer(1) });
        bench.submit(spec(1));
        let report = Input::Load { provider: provider(1), load: 0 };
        assert_eq!(bench.input(report), [assign(1, 1, 0)]);
        bench.finished(1, 1, Verdict::Answered);
        bench.submit(JobSpec { model: "n".into(), ..spec(2) });
        assert_eq!(bench.input(models(1, &["n"], 0)), [assign_for(2, 1, "n", 0)]);
        assert!(!bench.dispatcher.serves(&base::Scope::server(), &"m".into()));
        bench.input(models(1, &["*", "n"], 1));
        assert!(bench.dispatcher.serves(&base::Scope::server(), &"m".into()));
    }

    #[test]
    fn a_drain_lets_jobs_finish_and_then_retires() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        bench.submit(spec(1));
        assert_eq!(bench.drain(1, SECOND * 30), []);
        assert!(!bench.dispatcher.serves(&base::Scope::server(), &"m".into()));
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), [retire(1, true)]);
        assert_eq!(bench.drain(1, SECOND), []);
        bench.leave(1);
        bench.client_gone(2);
        assert_eq!(bench.dispatcher.poll_timeout(), None);
        assert!(bench.dispatcher.providers.is_empty());
    }

    #[test]
    fn at_the_end_of_its_grace_a_provider_loses_its_jobs() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        bench.submit(spec(1));
        bench.submit(spec(2));
        bench.begun(2);
        bench.join(2, offer(2));
        bench.drain(1, SECOND * 30);
        bench.drain(1, SECOND * 60);
        bench.drain(1, SECOND * 10);
        let cancelled = |number| cancel(number, 1, CancelReason::GracefulShutdown);
        let lost = end(2, Ending::ProviderLost);
        let expected = [cancelled(1), cancelled(2), lost, retire(1, false), assign(1, 2, 1)];
        assert_eq!(bench.wait(SECOND * 10), expected);
    }

    #[test]
    fn an_idle_provider_is_retired_at_once() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        assert_eq!(bench.drain(1, SECOND), [retire(1, true)]);
        assert_eq!(bench.wait(SECOND * 9), []);
    }

    #[test]
    fn a_resting_provider_gets_nothing_while_somebody_else_serves() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        send_to_rest(&mut bench);
        bench.join(2, offer(1));
        assert_eq!(bench.submit(spec(1)), [assign(1, 2, 0)]);
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.submit(spec(3)), []);
        assert_eq!(bench.wait(SECOND * 5), [assign(2, 1, 0)], "one trial job");
        assert_eq!(bench.finished(2, 1, Verdict::AnsweredWithFault), [], "rests again");
        assert_eq!(bench.wait(SECOND * 9), []);
        assert_eq!(bench.wait(SECOND), [assign(3, 1, 0)]);
        bench.submit(spec(4));
        bench.submit(spec(5));
        let both = [assign(4, 1, 0), assign(5, 1, 0)];
        assert_eq!(bench.finished(3, 1, Verdict::Answered), both, "healthy");
    }

    #[test]
    fn the_last_of_a_model_never_rests() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        send_to_rest(&mut bench);
        assert_eq!(bench.submit(spec(1)), [assign(1, 1, 0)]);
        bench.join(2, offer(1));
        bench.submit(spec(2));
        assert_eq!(bench.submit(spec(3)), [], "another serves it now");
        assert_eq!(bench.leave(2), [assign(2, 1, 1)], "and now nobody else does");
        bench.finished(2, 1, Verdict::Declined);
        assert_eq!(bench.dispatcher.queue_depth(), 1);
    }

    #[test]
    fn a_rest_is_looked_past_when_the_others_do_not_fit() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        send_to_rest(&mut bench);
        bench.join(2, Offer { max_size: 10, ..offer(1) });
        bench.submit(spec(1));
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.submit(JobSpec { size: 11, ..spec(3) }), [assign(3, 1, 0)]);
        assert_eq!(bench.input(models(2, &["n"], 1)), [assign(2, 1, 0)]);
    }

    #[test]
    fn shutdown_ends_what_waits_and_lets_the_rest_finish() {
        let mut bench = Bench::with(Config { max_queue_len: 9, ..Config::default() });
        bench.join(1, offer(2));
        for number in 1..=4 {
            bench.submit(spec(number));
        }
        let over = |number| end(number, Ending::ShuttingDown);
        assert_eq!(bench.input(Input::Shutdown), [over(3), over(4)]);
        assert_eq!(bench.submit(spec(5)), [over(5)]);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        assert_eq!(bench.leave(1), [over(2)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn an_answer_whose_provider_leaves_a_stopping_server_ends_with_the_server() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        bench.submit(spec(1));
        bench.begun(1);
        bench.input(Input::Shutdown);
        assert_eq!(bench.leave(1), [end(1, Ending::ShuttingDown)]);
        bench.assert_no_jobs();
    }

    #[test]
    fn a_grace_that_runs_out_while_the_server_stops_ends_jobs_with_the_server() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        bench.submit(spec(1));
        bench.submit(spec(2));
        bench.begun(2);
        bench.input(Input::Shutdown);
        bench.drain(1, SECOND);
        let cancelled = |number| cancel(number, 1, CancelReason::ServerShutdown);
        let over = |number| end(number, Ending::ShuttingDown);
        assert_eq!(
            bench.wait(SECOND),
            [cancelled(1), over(1), cancelled(2), over(2), retire(1, false)]
        );
        bench.assert_no_jobs();
    }

    #[test]
    fn abort_ends_everything() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, offer(1));
        bench.submit(spec(1));
        bench.submit(spec(2));
        bench.submit(spec(3));
        bench.begun(2);
        bench.drain(2, SECOND * 9);
        let cancelled = |number, at| cancel(number, at, CancelReason::ServerShutdown);
        let over = |number| end(number, Ending::ShuttingDown);
        let expected =
            [over(3), cancelled(1, 1), over(1), cancelled(2, 2), over(2), retire(2, false)];
        assert_eq!(bench.input(Input::Abort), expected);
        bench.assert_no_jobs();
        assert_eq!(bench.dispatcher.poll_timeout(), None);
    }
}
