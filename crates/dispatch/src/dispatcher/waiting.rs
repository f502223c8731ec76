//! How long a job waits, with a provider or without one.

use std::time::{Duration, Instant};

use base::{JobId, ModelName, ProviderId};

use super::Dispatcher;
use crate::{
    job::{Break, Job, JobState},
    output::Ending,
    provider::Provider,
    queue::Line,
    timers::Timer,
};

/// The shortest time between two looks at a waiting job's fallbacks.
const SHORTEST_LOOK: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// Queues the job for the rest of its time. A lent job never waits: it takes a lent slot at
    /// once, or ends.
    pub(super) fn enqueue(&mut self, now: Instant, mut job: Job) {
        if job.spec.lent {
            return self.take_lent(now, job);
        }
        let served = !self.nobody_is_able(&job);
        job.state = JobState::Queued { since: now, served };
        job.waits_on(now, served);
        self.arm_wait(now, &job, served);
        self.queues.push(&job);
        self.jobs.insert(job.id(), job);
    }

    /// Handles a change of a connected provider: jobs that wait for its models may have lost their
    /// last provider, or found their first. O(those jobs).
    pub(super) fn note_change(&mut self, now: Instant, id: ProviderId) {
        self.note_all(now, self.waiting_for_models_of(id));
    }

    /// All jobs that wait for a model of this provider.
    pub(super) fn waiting_for_models_of(&self, id: ProviderId) -> Vec<JobId> {
        let Some(provider) = self.providers.get(id) else { return Vec::new() };
        let models = provider.models.iter();
        let lines = models.flat_map(|model| self.queues.lines_of(&provider.scope, model));
        lines.flat_map(Line::all).collect()
    }

    /// The waiting jobs that have lost their last provider, or find their first, if this provider
    /// leaves or joins. The provider is not among the connected ones at this moment. Where other
    /// providers serve all that it serves, these can only be requeued jobs: only those avoid
    /// providers. O(those jobs).
    pub(super) fn depending_on(&self, provider: &Provider) -> Vec<JobId> {
        let of_model = |model: &ModelName| -> Vec<JobId> {
            let lines = self.queues.lines_of(&provider.scope, model);
            match self.providers.covered(provider, model) {
                true => lines.flat_map(|line| line.requeued(provider.reach())).collect(),
                false => lines.flat_map(Line::all).collect(),
            }
        };
        provider.models.iter().flat_map(of_model).collect()
    }

    /// Updates, for each of these jobs that waits, whether a connected provider can serve it.
    pub(super) fn note_all(&mut self, now: Instant, jobs: Vec<JobId>) {
        jobs.into_iter().for_each(|job| self.note_providers(now, job));
    }

    /// Applies the other time-out to a waiting job, if it has lost its last provider or found its
    /// first.
    fn note_providers(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let JobState::Queued { served: before, .. } = job.state else { return };
        let served = !self.nobody_is_able(job);
        if served != before {
            self.wait_on(now, id, served);
        }
    }

    /// Handles the deadline of a waiting job. A job whose time is over may only move to a model
    /// that has a free provider. While the providers of its model are busy, it also looks for such
    /// a model from time to time.
    pub(super) fn wait_due(&mut self, now: Instant, id: JobId, served: bool) {
        let Some(mut job) = self.jobs.get(&id).map(|job| waited(job.clone(), now)) else { return };
        let over = job.wait_left(served, &self.config).is_zero();
        let waited = job.waits.total();
        // A job without a provider would have gone to any cloud that could be asked. A cloud that
        // was away may be tried again now.
        let left = if served { job.targets_while_busy() } else { job.targets_left().len() };
        for _ in 0..left {
            job.next_target();
            if let Some(provider) = self.choose(now, &job) {
                self.unqueue(id);
                return self.assign(now, job, provider);
            }
        }
        if !over {
            return self.go_on_waiting(now, id, served);
        }
        let wait = self.wait(id).filter(|_| served);
        self.unqueue(id);
        let busy = |wait| Ending::BusyTimeout { waited, wait };
        let ending = wait.map_or(Ending::QueueTimeout, busy);
        self.end(id, job.broken_off.map_or(ending, Break::ending));
    }

    /// The time of a job is not over at its deadline if this was a look at its fallbacks, or if the
    /// time-outs were changed meanwhile.
    fn go_on_waiting(&mut self, now: Instant, id: JobId, served: bool) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.looked |= served;
        }
        self.wait_on(now, id, served);
    }

    /// From now on the job waits with a provider (`served`) or without one.
    pub(super) fn wait_on(&mut self, now: Instant, id: JobId, served: bool) {
        let Some(mut job) = self.jobs.remove(&id) else { return };
        job.waits_on(now, served);
        self.arm_wait(now, &job, served);
        self.jobs.insert(id, job);
    }

    fn arm_wait(&mut self, now: Instant, job: &Job, served: bool) {
        let left = job.wait_left(served, &self.config);
        let why = if served { "busy time-out" } else { "queue time-out" };
        let look = self.next_look(job).filter(|_| served);
        self.timers.arm(Timer::Job(job.id()), now, look.map_or(left, |look| look.min(left)), why);
    }

    /// After what further wait a job with fallbacks left looks at them.
    fn next_look(&self, job: &Job) -> Option<Duration> {
        let every = self.config.queue_timeout;
        let first = every.saturating_sub(job.waits.total());
        let look = if job.looked { every.max(SHORTEST_LOOK) } else { first };
        (job.targets_while_busy() > 0).then_some(look)
    }
}

/// The job, with its present wait added to its waits.
pub(super) fn waited(mut job: Job, now: Instant) -> Job {
    if let JobState::Queued { served, .. } = job.state {
        job.waits_on(now, served);
    }
    job
}

#[cfg(test)]
mod tests {
    use base::{Endpoint, Endpoints};

    use super::*;
    use crate::{
        Config, Distance, Input, JobSpec, Offer, Route, Verdict, Wait,
        fixture::{
            Bench, SECOND, assign, assign_for, end, job, offer, offer_of, or_else, provider, spec,
        },
    };

    fn busy(number: u128, seconds: u32, providers: usize, ahead: usize) -> crate::Output {
        let wait = Wait { providers, ahead };
        end(number, Ending::BusyTimeout { waited: SECOND * seconds, wait })
    }

    fn full(offer: Offer) -> Offer {
        Offer { load: 1, max_concurrent: 1, ..offer }
    }

    #[test]
    fn a_busy_provider_is_waited_for_longer_than_an_absent_one() {
        let mut bench = Bench::new();
        bench.join(1, full(offer(1)));
        for number in 1..=3 {
            bench.submit(spec(number));
        }
        let other = |number| JobSpec { key: "other".into(), ..spec(number) };
        bench.submit(other(4));
        bench.submit(JobSpec { model: "n".into(), ..spec(5) });
        assert_eq!(bench.wait(SECOND * 599), [end(5, Ending::QueueTimeout)]);
        assert_eq!(bench.dispatcher.wait(job(3)), Some(Wait { providers: 1, ahead: 3 }));
        let over = bench.wait(SECOND);
        assert_eq!(over, [1, 2, 3, 4].map(|number| busy(number, 600, 1, 0)), "in this order");
        bench.assert_no_jobs();
    }

    #[test]
    fn the_queue_time_out_applies_from_the_leave_of_the_last_provider() {
        let mut bench = Bench::new();
        bench.submit(spec(1));
        bench.wait(SECOND * 20);
        bench.join(1, full(offer(1)));
        bench.join(2, full(offer(1)));
        assert_eq!(bench.wait(SECOND * 500), []);
        bench.leave(1);
        assert_eq!(bench.wait(SECOND * 50), []);
        bench.leave(2);
        assert_eq!(bench.wait(SECOND * 29), []);
        assert_eq!(bench.wait(SECOND), [end(1, Ending::QueueTimeout)]);
    }

    #[test]
    fn a_longer_queue_time_out_holds_for_a_job_that_waits_already() {
        let mut bench = Bench::new();
        bench.submit(spec(1));
        bench.wait(SECOND * 20);
        let config = Config { queue_timeout: SECOND * 60, ..Config::default() };
        bench.dispatcher.configure(config);
        assert_eq!(bench.wait(SECOND * 39), []);
        assert_eq!(bench.wait(SECOND), [end(1, Ending::QueueTimeout)]);
    }

    #[test]
    fn the_busy_time_out_goes_on_where_it_was_when_a_provider_comes_back() {
        let mut bench = Bench::new();
        bench.join(1, full(offer(1)));
        bench.submit(spec(1));
        bench.wait(SECOND * 400);
        bench.leave(1);
        bench.wait(SECOND * 20);
        bench.join(2, full(offer(1)));
        assert_eq!(bench.wait(SECOND * 199), []);
        assert_eq!(bench.wait(SECOND), [busy(1, 620, 1, 0)]);
    }

    #[test]
    fn a_provider_that_comes_and_goes_makes_no_wait_endless() {
        let mut bench = Bench::new();
        bench.submit(spec(1));
        let (start, mut outputs) = (bench.now, Vec::new());
        for number in 1.. {
            outputs.extend(bench.wait(SECOND * 29));
            bench.join(number, full(offer(1)));
            outputs.extend(bench.wait(SECOND));
            bench.leave(number);
            if bench.now - start >= SECOND * 630 {
                break;
            }
        }
        assert_eq!(outputs, [busy(1, 630, 1, 0)]);
    }

    /// Whether a job waits in vain once this has happened to its only provider.
    fn is_absent_after(offer: Offer, event: Option<Input>, spec: JobSpec) -> bool {
        let mut bench = Bench::new();
        bench.join(1, full(offer));
        bench.submit(spec);
        event.into_iter().for_each(|event| _ = bench.input(event));
        match bench.wait(SECOND * 30)[..] {
            [] => false,
            [crate::Output::End { ending: Ending::QueueTimeout, .. }] => true,
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_provider_that_can_serve_the_job_counts() {
        let provider = provider(1);
        let messages = Endpoints::only(Endpoint::Messages);
        let models = |model: &str| Input::Models { provider, models: vec![model.into()], load: 1 };
        let gone = [
            Input::Drain { provider, grace: SECOND * 99 },
            models("n"),
            Input::Endpoints { provider, endpoints: messages },
        ];
        for event in gone {
            assert!(is_absent_after(offer(1), Some(event.clone()), spec(1)), "{event:?}");
        }
        let far = Input::Moved { provider, distance: Distance::Far };
        let stays = JobSpec { route: Route::LocalOnly, ..spec(1) };
        assert!(is_absent_after(offer(1), Some(far.clone()), stays));
        let harmless = [
            far,
            models("*"),
            Input::Load { provider, load: 9 },
            Input::Capacity { provider, max_concurrent: 0 },
            Input::Condition { provider, speed: None, throttle: 0 },
        ];
        for event in harmless {
            assert!(!is_absent_after(offer(1), Some(event.clone()), spec(1)), "{event:?}");
        }
    }

    #[test]
    fn a_resting_provider_counts_and_one_that_declined_does_not() {
        let mut bench = Bench::with(Config { faults_to_rest: 1, ..Config::default() });
        bench.join(1, offer(1));
        bench.submit(spec(1));
        bench.finished(1, 1, Verdict::AnsweredWithFault);
        bench.join(2, full(offer(1)));
        bench.submit(spec(2));
        bench.leave(2);
        assert_eq!(bench.dispatcher.in_flight(), 1, "the last one is asked, rest or not");
        bench.submit(spec(3));
        assert_eq!(bench.finished(2, 1, Verdict::Declined), [assign(3, 1, 0)]);
        assert_eq!(bench.dispatcher.wait(job(2)).map(|wait| wait.providers), Some(0));
        assert_eq!(bench.wait(SECOND * 30), [end(2, Ending::QueueTimeout)]);
    }

    #[test]
    fn a_requeued_job_depends_on_the_providers_that_it_does_not_avoid() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.join(2, full(offer(1)));
        bench.submit(spec(1));
        assert_eq!(bench.finished(1, 1, Verdict::Declined), []);
        bench.leave(2);
        assert_eq!(bench.wait(SECOND * 20), []);
        bench.join(3, full(offer(1)));
        assert_eq!(bench.wait(SECOND * 100), [], "another covers it, but not for this job");
        bench.leave(3);
        assert_eq!(bench.wait(SECOND * 30), [end(1, Ending::QueueTimeout)]);
    }

    #[test]
    fn while_its_model_is_busy_a_job_looks_for_a_free_fallback_now_and_then() {
        let mut bench = Bench::new();
        bench.join(1, full(offer(1)));
        bench.join(2, full(offer_of(&["n"])));
        bench.submit(or_else(1, &["n"]));
        assert_eq!(bench.wait(SECOND * 45), []);
        bench.input(Input::Load { provider: provider(2), load: 0 });
        assert_eq!(bench.wait(SECOND * 14), []);
        assert_eq!(bench.wait(SECOND), [assign_for(1, 2, "n", 0)]);
    }

    #[test]
    fn without_time_to_wait_a_busy_model_is_left_at_once() {
        let now = Duration::ZERO;
        let mut bench = Bench::with(Config { queue_timeout: now, ..Config::default() });
        bench.join(1, full(offer(1)));
        bench.join(2, offer_of(&["n"]));
        bench.submit(or_else(1, &["n"]));
        assert_eq!(bench.wait(now), [assign_for(1, 2, "n", 0)]);
        bench.submit(or_else(2, &["n"]));
        assert_eq!(bench.wait(SECOND * 9), [], "it looks each second");
        let mut bench = Bench::with(Config { busy_timeout: now, ..Config::default() });
        bench.join(1, full(offer(1)));
        bench.submit(spec(1));
        assert_eq!(bench.wait(now), [busy(1, 0, 1, 0)]);
    }
}
