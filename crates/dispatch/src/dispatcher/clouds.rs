//! Clouds: when a job goes to one, and when it does not.

use base::ProviderId;

use crate::{
    Distance, Ending, Input, JobSpec, Offer, Route, Verdict,
    fixture::{
        Bench, SECOND, assign, assign_for, end, job, offer, offer_of, or_else, provider, spec,
    },
};

/// The number of the provider that is a cloud.
const CLOUD: u64 = 9;

fn cloud(models: &[&str]) -> Offer {
    Offer { distance: Distance::Cloud, max_concurrent: 9, ..offer_of(models) }
}

fn may_leave(spec: JobSpec) -> JobSpec {
    JobSpec { clouds: true, ..spec }
}

/// A cloud with these models, and nothing else.
fn with_cloud(models: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.join(CLOUD, cloud(models));
    bench
}

#[test]
fn a_machine_of_ones_own_comes_first_and_is_waited_for_while_it_is_busy() {
    let mut bench = with_cloud(&["m"]);
    bench.join(1, offer(1));
    assert_eq!(bench.submit(may_leave(spec(1))), [assign(1, 1, 0)]);
    assert_eq!(bench.submit(may_leave(spec(2))), []);
    assert_eq!(
        bench.wait(SECOND * 300),
        [
            crate::fixture::cancel(1, 1, crate::CancelReason::Timeout),
            assign(1, CLOUD, 1),
            assign(2, 1, 0)
        ]
    );
    assert_eq!(bench.submit(may_leave(spec(3))), []);
    let ended = bench.finished(2, 1, Verdict::Answered);
    assert_eq!(ended, [assign(3, 1, 0)]);
}

#[test]
fn a_long_wait_a_full_queue_and_an_overload_lead_to_no_cloud() {
    let config = crate::Config { max_queue_len: 1, ..crate::Config::default() };
    let mut bench = Bench::with(config);
    bench.join(CLOUD, cloud(&["m"]));
    bench.join(1, Offer { load: 1, ..offer(1) });
    assert_eq!(bench.submit(may_leave(spec(1))), []);
    let full = bench.submit(may_leave(spec(2)));
    assert!(matches!(full[..], [crate::Output::End { ending: Ending::QueueFull { .. }, .. }]));
    let over = bench.wait(SECOND * 600);
    assert!(matches!(over[..], [crate::Output::End { ending: Ending::BusyTimeout { .. }, .. }]));
    bench.input(Input::Load { provider: provider(1), load: 0 });
    bench.submit(may_leave(spec(3)));
    assert!(
        !bench.dispatcher.has_idle_alternative(bench.now, job(3)),
        "its own answer is passed on"
    );
}

#[test]
fn a_cloud_takes_over_when_the_last_machine_leaves_fails_or_is_out_of_reach() {
    for verdict in [None, Some(Verdict::Failed), Some(Verdict::Unreachable)] {
        let mut bench = with_cloud(&["m"]);
        bench.join(1, offer(1));
        bench.submit(may_leave(spec(1)));
        bench.submit(may_leave(spec(2)));
        let moved = match verdict {
            None => bench.leave(1),
            Some(verdict) => bench.finished(1, 1, verdict),
        };
        assert!(moved.contains(&assign(1, CLOUD, 1)), "{verdict:?}: {moved:?}");
        let second = if verdict == Some(Verdict::Failed) { 1 } else { CLOUD };
        assert!(moved.contains(&assign(2, second, 0)), "{verdict:?}: {moved:?}");
    }
}

#[test]
fn a_machine_that_loads_is_waited_for() {
    let mut bench = with_cloud(&["m"]);
    bench.join(1, offer(1));
    bench.submit(may_leave(spec(1)));
    assert_eq!(bench.finished(1, 1, Verdict::Loading), []);
    assert_eq!(bench.wait(SECOND / 2), [assign(1, 1, 1)]);
}

#[test]
fn all_models_of_ones_own_come_before_the_cloud_of_the_first() {
    let mut bench = with_cloud(&["m", "n"]);
    bench.join(1, offer_of(&["n"]));
    assert_eq!(bench.submit(may_leave(or_else(1, &["n"]))), [assign_for(1, 1, "n", 0)]);
    assert_eq!(bench.leave(1), [assign_for(1, CLOUD, "m", 1)]);
}

#[test]
fn a_model_of_a_cloud_alone_is_served_by_it_and_by_a_machine_that_comes() {
    let mut bench = with_cloud(&["m"]);
    assert_eq!(bench.submit(may_leave(spec(1))), [assign(1, CLOUD, 0)]);
    bench.join(1, offer(1));
    assert_eq!(bench.submit(may_leave(spec(2))), [assign(2, 1, 0)]);
}

#[test]
fn what_waits_for_an_absent_machine_goes_to_a_cloud_that_connects() {
    let mut bench = Bench::new();
    assert_eq!(bench.submit(may_leave(spec(1))), []);
    assert_eq!(bench.submit(spec(2)), []);
    assert_eq!(bench.join(CLOUD, cloud(&["m"])), [assign(1, CLOUD, 0)], "the other may not");
    assert_eq!(bench.join(1, offer(1)), [assign(2, 1, 0)]);
}

#[test]
fn a_cloud_that_was_out_of_reach_is_tried_by_the_next_job() {
    let mut bench = with_cloud(&["m"]);
    bench.submit(may_leave(spec(1)));
    bench.finished(1, CLOUD, Verdict::Unreachable);
    bench.client_gone(1);
    assert_eq!(bench.submit(may_leave(spec(2))), []);
    assert_eq!(bench.wait(SECOND / 2), [assign(2, CLOUD, 0)]);
    bench.begun(2);
    assert_eq!(bench.submit(may_leave(spec(3))), [assign(3, CLOUD, 0)]);
}

#[test]
fn a_job_that_stays_here_or_is_barred_from_clouds_ends_without_one() {
    let mut bench = with_cloud(&["m"]);
    let stays = may_leave(JobSpec { route: Route::LocalOnly, ..spec(1) });
    assert_eq!(bench.submit(stays), [end(1, Ending::NoProvider)]);
    assert_eq!(bench.submit(spec(2)), [end(2, Ending::NoProvider)]);
    let shapes = |route| bench.dispatcher.endpoints_of(&base::Scope::server(), &"m".into(), route);
    assert_eq!(shapes(Route::LocalOnly), base::Endpoints::NONE);
    assert_ne!(shapes(Route::PreferLocal), base::Endpoints::NONE);
}

#[test]
fn a_job_for_a_cloud_by_name_goes_there_and_its_refusal_is_the_clouds() {
    let pinned = |number, to: ProviderId| may_leave(JobSpec { pinned: Some(to), ..spec(number) });
    let mut bench = with_cloud(&["m"]);
    bench.join(1, offer(1));
    assert_eq!(bench.submit(pinned(1, provider(CLOUD))), [assign(1, CLOUD, 0)]);
    let mut bench = Bench::new();
    bench.join(CLOUD, Offer { max_size: 10, ..cloud(&["m"]) });
    let large = may_leave(JobSpec { size: 11, known: false, ..spec(1) });
    assert_eq!(bench.submit(large), [end(1, Ending::TooLarge { limit: 10 })]);
}
