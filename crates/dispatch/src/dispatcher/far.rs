//! Providers on other machines: their distance and condition.

use std::time::Instant;

use base::ProviderId;

use super::Dispatcher;
use crate::distance::Distance;

impl Dispatcher {
    /// Changes a provider's distance. As with endpoints, jobs that may not leave this server may
    /// have lost their last provider, or found one.
    pub(super) fn moved(&mut self, now: Instant, id: ProviderId, distance: Distance) {
        if self.providers.change(id, |provider| provider.distance = distance).is_some() {
            let moved = self.go_on(now, self.concerned(id));
            self.fill(now, id);
            self.place_all(now, moved);
            self.fill_limited(now);
            self.note_change(now, id);
        }
    }

    pub(super) fn condition(
        &mut self,
        now: Instant,
        id: ProviderId,
        speed: Option<u32>,
        throttle: u8,
    ) {
        let changed = self.providers.change(id, |provider| {
            provider.speed.reports(speed);
            // A peer says this number itself. It offers all of its speed at most.
            provider.throttle = throttle.min(100);
        });
        if changed.is_some() {
            self.fill(now, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Endpoints;

    use super::*;
    use crate::{
        Config, Ending, Input, JobSpec, Offer, Output, Route, Verdict,
        fixture::{
            Bench, SECOND, assign, assign_for, end, job, offer, offer_of, or_else, provider, spec,
        },
    };

    const HERE: Distance = Distance::Here;
    const NEAR: Distance = Distance::Near;
    const FAR: Distance = Distance::Far;

    fn at(distance: Distance, max_concurrent: u32) -> Offer {
        Offer { distance, ..offer(max_concurrent) }
    }

    fn routed(number: u128, route: Route) -> JobSpec {
        JobSpec { route, ..spec(number) }
    }

    fn stays(number: u128) -> JobSpec {
        routed(number, Route::LocalOnly)
    }

    fn moved(number: u64, distance: Distance) -> Input {
        Input::Moved { provider: provider(number), distance }
    }

    fn condition(number: u64, speed: Option<u32>, throttle: u8) -> Input {
        Input::Condition { provider: provider(number), speed, throttle }
    }

    /// The provider that the job goes to, if any.
    fn taker(outputs: &[Output], number: u128) -> Option<base::ProviderId> {
        outputs.iter().find_map(|output| match output {
            Output::Assign { job: id, provider, .. } if *id == job(number) => Some(*provider),
            _ => None,
        })
    }

    #[test]
    fn the_nearest_that_is_free_comes_first() {
        let mut bench = Bench::new();
        for (number, distance) in [(1, FAR), (2, NEAR), (3, HERE)] {
            bench.join(number, at(distance, 1));
        }
        for (number, by) in [(1, 3), (2, 2), (3, 1)] {
            assert_eq!(bench.submit(spec(number)), [assign(number, by, 0)]);
        }
        assert_eq!(bench.submit(spec(4)), []);
        assert_eq!(bench.finished(3, 1, Verdict::Answered), [assign(4, 1, 0)], "rather than wait");
    }

    #[test]
    fn the_nearest_comes_before_the_one_that_serves_the_shape_itself() {
        let chat = Endpoints::only(base::Endpoint::ChatCompletions);
        let either = |number, route| JobSpec {
            endpoint: base::Endpoint::Messages,
            serve_as: chat.with(base::Endpoint::Messages),
            ..routed(number, route)
        };
        let mut bench = Bench::new();
        bench.join(1, Offer { endpoints: chat, ..at(HERE, 9) });
        bench.join(2, at(NEAR, 9));
        assert_eq!(taker(&bench.submit(either(1, Route::PreferLocal)), 1), Some(provider(1)));
        assert_eq!(taker(&bench.submit(either(2, Route::Mesh)), 2), Some(provider(2)));
    }

    #[test]
    fn a_job_that_stays_here_takes_nobody_else_for_there() {
        let mut bench = Bench::new();
        bench.join(1, at(NEAR, 1));
        assert_eq!(bench.submit(stays(1)), [end(1, Ending::NoProvider)]);
        bench.join(2, Offer { endpoints: Endpoints::NONE, ..at(HERE, 1) });
        assert_eq!(bench.submit(stays(2)), [end(2, Ending::NotServed)]);
        bench.join(3, Offer { max_size: 0, ..at(HERE, 1) });
        assert_eq!(bench.submit(stays(3)), [end(3, Ending::TooLarge { limit: 0 })]);
        let pinned = JobSpec { pinned: Some(provider(1)), ..stays(4) };
        assert_eq!(bench.submit(pinned), [end(4, Ending::NoProvider)]);
        let known = JobSpec { model: "n".into(), ..stays(5) };
        assert_eq!(bench.submit(known), [], "worth waiting for, and nobody has it anywhere");
    }

    #[test]
    fn a_job_that_stays_here_waits_for_who_is_here() {
        let mut bench = Bench::new();
        bench.join(1, at(HERE, 1));
        bench.submit(spec(1));
        assert_eq!(bench.submit(stays(2)), []);
        assert_eq!(bench.submit(spec(3)), []);
        assert_eq!(bench.join(2, at(FAR, 9)), [assign(3, 2, 0)], "it is passed by");
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [assign(1, 2, 1), assign(2, 1, 0)]);
        assert_eq!(bench.finished(2, 1, Verdict::Failed), [end(2, Ending::ProviderFailed)]);
    }

    #[test]
    fn a_job_that_stays_here_falls_back_here() {
        let mut bench = Bench::new();
        bench.join(1, at(NEAR, 9));
        bench.join(2, offer_of(&["n"]));
        let first = JobSpec { route: Route::LocalOnly, ..or_else(1, &["n"]) };
        assert_eq!(bench.submit(first), [assign_for(1, 2, "n", 0)]);
        bench.join(3, at(HERE, 1));
        bench.submit(stays(2));
        let third = JobSpec { route: Route::LocalOnly, ..or_else(3, &["n"]) };
        assert_eq!(bench.submit(third), [], "waits for who has its first");
        bench.leave(3);
        assert_eq!(bench.finished(1, 2, Verdict::Answered), [assign_for(3, 2, "n", 0)]);
    }

    #[test]
    fn a_resting_local_provider_is_the_last_choice_for_local_jobs() {
        let mut bench = Bench::with(Config { faults_to_rest: 1, ..Config::default() });
        bench.join(1, at(HERE, 1));
        bench.join(2, at(NEAR, 1));
        bench.submit(spec(1));
        assert_eq!(bench.finished(1, 1, Verdict::Failed), [assign(1, 2, 1)]);
        assert_eq!(bench.submit(spec(2)), [], "somebody healthy could take it");
        assert_eq!(bench.submit(stays(3)), [assign(3, 1, 0)]);
        assert_eq!(bench.submit(stays(4)), []);
        let outputs = bench.finished(3, 1, Verdict::AnsweredWithFault);
        assert_eq!(outputs, [assign(4, 1, 0)], "the other is healthy, and not here");
        assert_eq!(bench.finished(4, 1, Verdict::Answered), [assign(2, 1, 0)]);
    }

    #[test]
    fn on_the_mesh_the_fastest_come_first_and_the_nearest_of_these() {
        let mut bench = Bench::new();
        for (number, distance, speed) in [(1, HERE, 10), (2, FAR, 50), (3, NEAR, 45), (4, NEAR, 20)]
        {
            bench.join(number, at(distance, 1));
            bench.input(condition(number, Some(speed), 100));
        }
        for (number, by) in [(1, 3), (2, 2), (3, 4), (4, 1)] {
            assert_eq!(bench.submit(routed(number, Route::Mesh)), [assign(number, by, 0)]);
        }
    }

    #[test]
    fn among_peers_the_fastest_comes_first_whatever_the_route() {
        let mut bench = Bench::new();
        for (number, speed) in [(1, 10), (2, 50)] {
            bench.join(number, at(NEAR, 3));
            bench.input(condition(number, Some(speed), 100));
        }
        for (number, by) in [(1, 2), (2, 2), (3, 2), (4, 1)] {
            assert_eq!(bench.submit(spec(number)), [assign(number, by, 0)]);
        }
    }

    #[test]
    fn speed_is_measured_from_the_assignment_to_the_end() {
        let mut bench = Bench::new();
        bench.join(1, at(NEAR, 2));
        bench.join(2, at(NEAR, 2));
        bench.input(condition(1, Some(1), 100));
        bench.submit(spec(1));
        bench.submit(spec(2));
        bench.wait(SECOND * 10);
        bench.answered(1, 2, 50);
        bench.answered(2, 1, 100);
        let speeds: Vec<_> = bench.dispatcher.providers().map(|view| view.speed).collect();
        assert_eq!(speeds, [Some(10_000), Some(5_000)]);
        assert_eq!(bench.submit(spec(3)), [assign(3, 1, 0)]);
        bench.finished(3, 1, Verdict::AnsweredWithFault);
        bench.submit(spec(4));
        bench.finished(4, 1, Verdict::Failed);
        let speed = bench.dispatcher.providers().next().and_then(|view| view.speed);
        assert_eq!(speed, Some(10_000), "only good answers count");
    }

    #[test]
    fn a_slow_provider_is_measured_again() {
        let mut bench = Bench::with(Config { try_slow_every: 3, ..Config::default() });
        bench.join(1, at(NEAR, 1));
        bench.join(2, at(NEAR, 1));
        bench.input(condition(1, Some(1_000), 100));
        bench.input(condition(2, Some(10), 100));
        let mut taken = Vec::new();
        for number in 1..=5 {
            let by = taker(&bench.submit(spec(number)), number).unwrap();
            let by = if by == provider(1) { 1 } else { 2 };
            bench.wait(SECOND / 100);
            bench.answered(number, by, 10);
            taken.push(by);
        }
        assert_eq!(taken, [1, 1, 2, 1, 2], "as fast as the other, it takes turns");
    }

    #[test]
    fn a_paused_provider_gets_no_job_and_its_jobs_wait() {
        let mut bench = Bench::new();
        bench.join(1, at(NEAR, 2));
        bench.join(2, offer_of(&["n"]));
        bench.submit(spec(1));
        assert_eq!(bench.input(condition(1, None, 0)), [], "what it has, it keeps");
        assert_eq!(bench.submit(or_else(2, &["n"])), []);
        assert_eq!(bench.submit(JobSpec { known: false, ..spec(3) }), []);
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
        assert_eq!(bench.input(condition(1, None, 1)), [assign(2, 1, 0), assign(3, 1, 0)]);
        bench.input(condition(1, None, 0));
        bench.submit(or_else(4, &["n"]));
        assert_eq!(bench.wait(SECOND * 30), [assign_for(4, 2, "n", 0)], "as if it were full");
    }

    #[test]
    fn a_new_local_provider_takes_local_jobs() {
        let mut bench = Bench::new();
        bench.submit(stays(1));
        assert_eq!(bench.join(1, at(FAR, 1)), []);
        assert_eq!(bench.input(moved(1, NEAR)), []);
        assert_eq!(bench.input(moved(1, HERE)), [assign(1, 1, 0)]);
        assert_eq!(bench.input(moved(1, FAR)), [], "what it has, it keeps");
        assert_eq!(bench.finished(1, 1, Verdict::Answered), []);
    }

    #[test]
    fn when_the_last_moves_away_what_stays_here_goes_on_to_another_model() {
        let mut bench = Bench::new();
        bench.join(1, Offer { load: 1, ..at(HERE, 1) });
        bench.join(2, offer_of(&["n"]));
        let first = JobSpec { route: Route::LocalOnly, ..or_else(1, &["n"]) };
        assert_eq!(bench.submit(first), []);
        assert_eq!(bench.input(moved(1, NEAR)), [assign_for(1, 2, "n", 0)]);
    }

    #[test]
    fn a_link_that_becomes_direct_counts_as_near_at_once() {
        let mut bench = Bench::new();
        for number in [1, 2] {
            bench.join(number, at(FAR, 9));
            bench.input(condition(number, Some(10), 100));
        }
        bench.input(moved(2, NEAR));
        for number in 1..=3 {
            assert_eq!(bench.submit(spec(number)), [assign(number, 2, 0)]);
        }
    }

    #[test]
    fn many_jobs_that_stay_here_cost_who_is_far_nothing() {
        let config = Config { max_queue_len: 200_000, ..Config::default() };
        let mut bench = Bench::with(config);
        bench.join(1, Offer { load: 1, ..at(HERE, 1) });
        (0..50_000).for_each(|number| drop(bench.submit(stays(number))));
        bench.join(2, at(FAR, 1));
        for number in 100_000..120_000 {
            assert_eq!(bench.submit(spec(number)), [assign(number, 2, 0)]);
            assert_eq!(bench.finished(number, 2, Verdict::Answered), []);
        }
    }
}
