//! Slots that are lent to fellows, and slots that are borrowed from them.

use std::time::{Duration, Instant};

use base::{ProviderId, Scope};

use super::Dispatcher;
use crate::{job::Job, output::Ending, provider::Provider, queue::Line};

/// The most waiting jobs that are looked at to see what is wanted of fellows.
const MOST_LOOKED_AT: usize = 256;
/// The most of these that wait for one model.
const MOST_OF_A_LINE: usize = 32;
/// The most lines that are looked at.
const MOST_LINES: usize = 1_024;
/// How many fellows' providers a job asks for a slot at a time. More than one, since a fellow may
/// have none to lend; few, since a slot that is lent in vain is idle for a second.
const WANTED_OF: usize = 2;
/// After this time a waiting job asks other providers for a slot.
const TURN: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// How many slots of the provider are neither used by own jobs nor lent. 0 while it drains,
    /// rests, sleeps, is paused or has no backend, and for a borrowed provider. The caller must
    /// lend under the same lock under which it asked.
    pub fn lendable(&self, provider: ProviderId) -> u32 {
        if self.stopping {
            return 0;
        }
        self.providers.get(provider).map_or(0, Provider::lendable)
    }

    /// How many own jobs wait that the provider could serve if it had more slots; at most its
    /// capacity.
    pub fn short(&self, provider: ProviderId) -> u32 {
        let full = |it: &&Provider| it.is_only_full() && !it.is_out() && !self.stopping;
        let Some(it) = self.providers.get(provider).filter(full) else { return 0 };
        let any = self.lines_for(it).into_iter().flat_map(|line| self.some_of(line, it));
        let pinned = self.pinned_to(&it.scope, provider);
        let fits = pinned.chain(any).take(MOST_LOOKED_AT).filter(|job| may_have(job, provider, it));
        count(fits.take(it.max_concurrent as usize).count())
    }

    /// How many more slots are wanted of each borrowed provider, sorted by id. A waiting job wants
    /// one slot each of two providers that could serve it and lack only a free slot; those that the
    /// fewest jobs want come first. After each second of waiting it turns to two others. At most
    /// 256 jobs count, the oldest lines first, and at most 32 of a line. The jobs behind them count
    /// once those before them have left.
    pub fn wants(&self, now: Instant) -> Vec<(ProviderId, u32)> {
        let mut wants: Vec<_> = self.providers.borrowed().map(|(id, it)| (id, it, 0)).collect();
        if wants.is_empty() || self.queues.depth() == 0 || self.stopping {
            return wants.into_iter().map(|(id, _, count)| (id, count)).collect();
        }
        for job in self.those_that_may_want(&wants) {
            let rotation = job.waited(now).as_secs() / TURN.as_secs() + job.seq;
            let (len, turn) = (wants.len() as u64, rotation * WANTED_OF as u64);
            let may = |(id, it, _): &(ProviderId, &Provider, u32)| {
                it.is_only_full() && !it.is_out() && may_have(job, *id, it)
            };
            let mut able: Vec<_> = (0..wants.len()).filter(|at| may(&wants[*at])).collect();
            // The order begins with another provider each time, so that none is always the first
            // among equals.
            able.sort_by_key(|at| (wants[*at].2, (*at as u64 + len - turn % len) % len));
            able.into_iter().take(WANTED_OF).for_each(|at| wants[at].2 += 1);
        }
        wants.into_iter().map(|(id, _, count)| (id, count)).collect()
    }

    pub(super) fn lend(&mut self, now: Instant, id: ProviderId, slots: u32) {
        let free = self.lendable(id);
        let lent = self.providers.change(id, |provider| {
            // An own job may have taken a slot since the fellow was promised it.
            provider.lent = slots.min(provider.lent.saturating_add(free));
        });
        if lent.is_some() {
            self.fill(now, id);
        }
    }

    /// Assigns a fellow's job to a lent slot of its provider, or ends it.
    pub(super) fn take_lent(&mut self, now: Instant, job: Job) {
        let provider = job.spec.pinned.filter(|id| {
            let found = self.providers.get(*id);
            !self.stopping && found.is_some_and(|it| takes_lent(&job, *id, it))
        });
        match provider {
            Some(provider) => self.assign(now, job, provider),
            None if self.stopping => self.end(job.id(), Ending::ShuttingDown),
            None => self.end(job.id(), Ending::NotLent),
        }
    }

    /// The oldest jobs of all lines that one of these borrowed providers might serve, and the jobs
    /// pinned to them.
    fn those_that_may_want<'a>(
        &'a self,
        wants: &[(ProviderId, &'a Provider, u32)],
    ) -> Vec<&'a Job> {
        let mut scopes: Vec<_> = wants.iter().map(|(_, it, _)| &it.scope).collect();
        scopes.sort_unstable();
        scopes.dedup();
        let pinned = wants.iter().flat_map(|(id, it, _)| self.pinned_to(&it.scope, *id));
        let lines = scopes.into_iter().flat_map(|scope| {
            let lines = self.queues.unpinned(scope).take(MOST_LINES);
            lines.filter(|(model, _)| self.providers.of(scope, model).any(|(_, it)| it.borrowed))
        });
        let any = lines.flat_map(|(_, line)| {
            let jobs = line.all().filter_map(|id| self.jobs.get(&id));
            jobs.take(MOST_OF_A_LINE)
        });
        pinned.chain(any).take(MOST_LOOKED_AT).collect()
    }

    /// The lines without a pin that this provider serves.
    fn lines_for<'a>(&'a self, it: &'a Provider) -> Vec<&'a Line> {
        if it.is_wildcard() {
            let lines = self.queues.unpinned(&it.scope).take(MOST_LINES);
            return lines.map(|(_, line)| line).collect();
        }
        let line = |model| self.queues.line(&it.scope, model, None);
        it.models.iter().filter_map(line).collect()
    }

    fn some_of<'a>(&'a self, line: &'a Line, it: &Provider) -> impl Iterator<Item = &'a Job> {
        let jobs = line.in_order(it.reach()).filter_map(|id| self.jobs.get(&id));
        jobs.take(MOST_OF_A_LINE)
    }

    fn pinned_to(&self, scope: &Scope, id: ProviderId) -> impl Iterator<Item = &Job> {
        let pinned = self.queues.pinned_to(scope, id);
        pinned.into_iter().filter_map(|job| self.jobs.get(&job))
    }
}

/// Whether the provider could serve the job if it had a free slot.
fn may_have(job: &Job, id: ProviderId, provider: &Provider) -> bool {
    job.spec.scope == provider.scope
        && provider.serves(&job.spec.model)
        && job.demand().fits(id, provider)
}

/// Whether the provider takes a fellow's job now.
fn takes_lent(job: &Job, id: ProviderId, provider: &Provider) -> bool {
    provider.has_lent_slot()
        && !provider.is_out()
        && !provider.borrowed
        && job.spec.scope == provider.scope
        && provider.serves(&job.spec.model)
        && job.spec.size <= provider.max_size
        && job.spec.serve_as.meets(provider.endpoints)
        && !job.avoided.contains(&id)
}

fn count(jobs: usize) -> u32 {
    u32::try_from(jobs).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use base::{Endpoint, Endpoints};

    use super::*;
    use crate::{
        CancelReason, Config, Distance, Input, JobSpec, Offer, Output, Route, Verdict,
        fixture::{
            Bench, SECOND, assign, assign_for, cancel, end, offer, offer_of, provider, spec,
        },
    };

    fn lent(number: u128, at: u64) -> JobSpec {
        JobSpec { lent: true, pinned: Some(provider(at)), known: false, ..spec(number) }
    }

    fn lend(number: u64, slots: u32) -> Input {
        Input::Lend { provider: provider(number), slots }
    }

    fn capacity(number: u64, max_concurrent: u32) -> Input {
        Input::Capacity { provider: provider(number), max_concurrent }
    }

    /// A fellow's provider, of which no slot is lent.
    fn borrowed() -> Offer {
        Offer { borrowed: true, distance: Distance::Fellow, ..offer(0) }
    }

    fn wants(bench: &Bench) -> Vec<u32> {
        bench.dispatcher.wants(bench.now).into_iter().map(|(_, count)| count).collect()
    }

    fn lendable(bench: &Bench) -> u32 {
        bench.dispatcher.lendable(provider(1))
    }

    #[test]
    fn own_jobs_have_what_is_not_lent_and_lent_jobs_have_the_rest() {
        let mut bench = Bench::new();
        bench.join(1, offer(3));
        assert_eq!(lendable(&bench), 3);
        bench.input(lend(1, 2));
        assert_eq!(lendable(&bench), 1);
        assert_eq!(bench.submit(spec(1)), [assign(1, 1, 0)]);
        assert_eq!(bench.submit(spec(2)), [], "the others are lent");
        assert_eq!(bench.submit(lent(3, 1)), [assign(3, 1, 0)]);
        assert_eq!(bench.submit(lent(4, 1)), [assign(4, 1, 0)]);
        assert_eq!(bench.submit(lent(5, 1)), [end(5, Ending::NotLent)]);
        assert_eq!(bench.finished(3, 1, Verdict::Answered), [], "its slot stays the fellow's");
        assert_eq!(bench.dispatcher.short(provider(1)), 1);
        assert_eq!(bench.input(lend(1, 1)), [assign(2, 1, 0)], "one came back");
        assert_eq!(bench.submit(lent(6, 1)), [end(6, Ending::NotLent)]);
    }

    #[test]
    fn all_slots_may_be_lent_and_no_more_than_are_free() {
        let mut bench = Bench::new();
        bench.join(1, offer(2));
        bench.submit(spec(1));
        bench.input(lend(1, 2));
        let view = bench.dispatcher.provider(provider(1));
        assert_eq!(view.map(|view| view.lent), Some(1), "one is in use");
        bench.finished(1, 1, Verdict::Answered);
        bench.input(lend(1, 2));
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(
            bench.dispatcher.wait(crate::fixture::job(2)).map(|wait| wait.providers),
            Some(1)
        );
        assert_eq!(bench.input(lend(1, 0)), [assign(2, 1, 0)]);
    }

    #[test]
    fn nothing_is_lendable_of_who_takes_nothing() {
        let paused = Input::Condition { provider: provider(1), speed: None, throttle: 0 };
        let drained = Input::Drain { provider: provider(1), grace: SECOND };
        for event in [paused, drained, Input::Shutdown] {
            let mut bench = Bench::new();
            bench.join(1, offer(3));
            bench.input(lend(1, 1));
            bench.input(event.clone());
            assert_eq!(lendable(&bench), 0, "{event:?}");
            let ended = bench.submit(lent(1, 1));
            assert!(matches!(ended[..], [Output::End { .. }]), "{event:?}");
        }
        let mut bench = Bench::with(Config { faults_to_rest: 1, ..Config::default() });
        bench.join(1, offer(3));
        bench.submit(spec(1));
        bench.finished(1, 1, Verdict::AnsweredWithFault);
        assert_eq!(lendable(&bench), 0, "it rests");
    }

    #[test]
    fn what_others_report_of_a_provider_is_not_lent() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 2, ..offer(3) });
        assert_eq!(lendable(&bench), 1);
        bench.input(lend(1, 1));
        bench.input(Input::Load { provider: provider(1), load: 3 });
        assert_eq!(bench.submit(lent(1, 1)), [end(1, Ending::NotLent)], "it is full");
    }

    #[test]
    fn a_lent_job_that_has_not_begun_goes_home() {
        use Verdict::{Declined, Failed, Loading, ModelFailed, Overloaded, Unreachable};
        for (verdict, ending) in [
            (Declined, Ending::NotLent),
            (Unreachable, Ending::NotLent),
            (Loading, Ending::NotLent),
            (Failed, Ending::ProviderFailed),
            (ModelFailed, Ending::ProviderFailed),
            (Overloaded, Ending::ProviderFailed),
        ] {
            let mut bench = Bench::new();
            bench.join(1, offer(2));
            bench.join(2, offer(2));
            bench.input(lend(1, 1));
            let fallbacks = vec!["n".into()];
            bench.submit(JobSpec { fallbacks, clouds: true, ..lent(1, 1) });
            let ended = bench.finished(1, 1, verdict);
            assert_eq!(ended, [end(1, ending)], "{verdict:?}: neither waits nor goes on");
            bench.assert_no_jobs();
        }
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.input(lend(1, 1));
        bench.submit(lent(1, 1));
        assert_eq!(bench.leave(1), [end(1, Ending::ProviderLost)]);
    }

    #[test]
    fn a_lent_job_is_tried_in_another_shape_where_it_is() {
        let chat = Endpoints::only(Endpoint::ChatCompletions);
        let both = chat.with(Endpoint::Messages);
        let mut bench = Bench::new();
        bench.join(1, Offer { endpoints: both, ..offer(1) });
        bench.input(lend(1, 1));
        bench.submit(JobSpec { endpoint: Endpoint::Messages, serve_as: both, ..lent(1, 1) });
        bench.input(Input::Endpoints { provider: provider(1), endpoints: chat });
        let repeat = crate::fixture::assign_as(1, 1, "m", chat, 1);
        assert_eq!(bench.finished(1, 1, Verdict::Unserved), [repeat]);
    }

    #[test]
    fn the_bounds_of_queues_and_routes_are_not_for_lent_jobs() {
        let mut bench = Bench::with(Config { max_queue_len: 0, ..Config::default() });
        bench.join(1, Offer { distance: Distance::Cloud, ..offer(2) });
        bench.input(lend(1, 2));
        assert_eq!(bench.submit(lent(1, 1)), [assign(1, 1, 0)]);
        assert_eq!(bench.client_gone(1), [cancel(1, 1, CancelReason::ClientDisconnect)]);
        let stays = JobSpec { route: Route::LocalOnly, ..lent(2, 1) };
        assert_eq!(bench.submit(stays), [assign(2, 1, 0)], "how far it may go its home knows");
    }

    #[test]
    fn a_fellows_provider_is_busy_while_it_lends_nothing() {
        let mut bench = Bench::new();
        bench.join(1, borrowed());
        assert_eq!(bench.submit(JobSpec { known: false, ..spec(1) }), []);
        assert_eq!(wants(&bench), [1]);
        assert_eq!(bench.input(capacity(1, 1)), [assign(1, 1, 0)]);
        assert_eq!(wants(&bench), [0]);
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(wants(&bench), [1]);
        bench.input(capacity(1, 0));
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        let busy = bench.wait(SECOND * 600);
        assert!(matches!(busy[..], [Output::End { ending: Ending::BusyTimeout { .. }, .. }]));
    }

    #[test]
    fn nothing_borrowed_is_lent_on() {
        let mut bench = Bench::new();
        bench.join(1, borrowed());
        bench.input(capacity(1, 2));
        assert_eq!(lendable(&bench), 0);
        bench.input(lend(1, 1));
        assert_eq!(bench.submit(lent(1, 1)), [end(1, Ending::NotLent)]);
    }

    #[test]
    fn an_own_provider_comes_before_a_fellows_and_that_before_a_peer() {
        for route in [Route::PreferLocal, Route::Mesh] {
            let mut bench = Bench::new();
            bench.join(1, Offer { distance: Distance::Near, ..offer(1) });
            bench.join(2, borrowed());
            bench.input(capacity(2, 1));
            bench.join(3, offer(1));
            for (number, speed) in [(1, 10), (2, 10), (3, 10)] {
                let provider = provider(number);
                bench.input(Input::Condition { provider, speed: Some(speed), throttle: 100 });
            }
            for (number, by) in [(1, 3), (2, 2), (3, 1)] {
                let spec = JobSpec { route, ..spec(number) };
                assert_eq!(bench.submit(spec), [assign(number, by, 0)], "{route:?}");
            }
        }
        let mut bench = Bench::new();
        bench.join(1, borrowed());
        bench.input(capacity(1, 1));
        let stays = JobSpec { route: Route::LocalOnly, ..spec(1) };
        assert_eq!(bench.submit(stays), [assign(1, 1, 0)], "the fleet is one server");
    }

    #[test]
    fn a_job_wants_slots_of_two_and_of_others_later() {
        let mut bench = Bench::new();
        (1..=5).for_each(|number| drop(bench.join(number, borrowed())));
        bench.submit(spec(1));
        let mut askers = std::collections::BTreeSet::new();
        for _ in 0..5 {
            let wants = wants(&bench);
            assert_eq!(wants.iter().sum::<u32>(), 2);
            askers.extend((0..5).filter(|at| wants[*at] > 0));
            bench.wait(SECOND);
        }
        assert_eq!(askers.len(), 5, "each has its turn");
    }

    #[test]
    fn many_jobs_are_spread_and_their_number_is_bounded() {
        let config = Config { max_queue_len: 2_000, ..Config::default() };
        let mut bench = Bench::with(config);
        (1..=4).for_each(|number| drop(bench.join(number, borrowed())));
        (0..500).for_each(|number| drop(bench.submit(spec(number))));
        assert_eq!(wants(&bench), [16; 4], "32 of a line, twice");
        for number in 500..1_000 {
            let model = format!("m{number}").as_str().into();
            bench.submit(JobSpec { model, ..spec(number) });
        }
        assert_eq!(wants(&bench), [16; 4], "what they do not serve is passed over");
        bench.input(Input::Models { provider: provider(1), models: vec!["*".into()], load: 0 });
        assert_eq!(wants(&bench).iter().sum::<u32>(), 2 * 32 + 256 - 32);
    }

    #[test]
    fn a_fellows_model_in_memory_is_no_reason_to_wait_for_it() {
        let unloaded = crate::Unloaded { model: "m".into(), is_loading: false, takes: None };
        let mut bench = Bench::new();
        bench.join(1, Offer { unloaded: vec![unloaded], ..offer(1) });
        bench.join(2, borrowed());
        assert_eq!(bench.submit(spec(1)), [assign(1, 1, 0)], "it is farther away");
    }

    #[test]
    fn short_counts_only_jobs_that_the_provider_could_serve() {
        let mut bench = Bench::new();
        bench.join(1, Offer { max_size: 10, ..offer_of(&["m", "n"]) });
        bench.input(lend(1, 1));
        bench.submit(spec(1));
        bench.submit(JobSpec { size: 11, ..spec(2) });
        assert_eq!(bench.dispatcher.short(provider(1)), 1);
        bench.input(capacity(1, 4));
        assert_eq!(bench.dispatcher.short(provider(1)), 0, "nobody waits for it any more");
        bench.submit(JobSpec { model: "n".into(), ..spec(3) });
        assert_eq!(bench.dispatcher.in_flight(), 2);
        assert_eq!(
            bench.submit(JobSpec { model: "n".into(), ..spec(4) }),
            [assign_for(4, 1, "n", 0)]
        );
    }
}
