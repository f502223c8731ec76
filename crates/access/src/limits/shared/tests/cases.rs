//! Single cases.

use std::time::Duration;

use base::{Budget, KeyLimits, Period};
use store::pools::Measure;

use super::world::{Outcome, World, limits};

#[test]
fn one_server_alone_uses_a_budget_to_its_last_token() {
    let mut world = World::new(limits(Measure::Budget, 1_000), 3, None);
    for number in 0..100 {
        assert_eq!(world.patient_request(0, 10, 10), Outcome::Admitted, "{number}");
        world.end_job(0);
    }
    assert_eq!(world.patient_request(0, 10, 10), Outcome::Refused);
    assert_eq!(world.used(), 1_000);
}

#[test]
fn what_another_server_holds_idle_comes_within_a_second() {
    let mut world = World::new(limits(Measure::Budget, 1_000), 2, None);
    for _ in 0..40 {
        assert_eq!(world.patient_request(0, 10, 10), Outcome::Admitted);
        world.end_job(0);
    }
    let mut admitted = 0;
    while world.patient_request(1, 10, 10) == Outcome::Admitted {
        world.end_job(1);
        admitted += 1;
    }
    assert_eq!(admitted, 60, "the whole rest");
}

#[test]
fn after_a_rest_no_more_than_a_minutes_worth_comes_at_once() {
    let mut world = World::new(limits(Measure::Requests, 60), 2, None);
    for _ in 0..30 {
        world.patient_request(0, 1, 1);
    }
    for _ in 0..9 {
        world.pass(20_000);
        (0..2).for_each(|at| world.speak(at));
    }
    let burst = (0..200).filter(|number| {
        let outcome = world.patient_request(number % 2, 1, 1);
        outcome == Outcome::Admitted
    });
    let began = 60;
    assert!(burst.count() <= began + 60 * 200 / 60, "and what came back in these seconds");
}

#[test]
fn a_budget_of_a_new_month_is_whole_and_keeps_what_is_in_flight() {
    let budget = Some(Budget { tokens: 100, per: Period::Day });
    let mut world = World::new(KeyLimits { budget, ..KeyLimits::default() }, 1, None);
    assert_eq!(world.patient_request(0, 100, 100), Outcome::Admitted);
    assert_eq!(world.patient_request(0, 1, 1), Outcome::Refused);
    world.pass(24 * 3_600_000);
    assert_eq!(world.patient_request(0, 1, 1), Outcome::Refused, "the first job still runs");
    world.end_job(0);
    world.pass(1_000);
    assert_eq!(
        world.patient_request(0, 1, 1),
        Outcome::Refused,
        "it counts for the day of its end"
    );
}

#[test]
fn a_rate_goes_on_at_a_part_while_the_database_is_away() {
    let mut world = World::new(limits(Measure::Requests, 60), 2, None);
    world.patient_request(0, 1, 1);
    world.cut_off(0);
    let mut admitted = 0;
    for _ in 0..600 {
        admitted += usize::from(world.request(0, 1, 1, false) == Outcome::Admitted);
        world.pass(1_000);
    }
    assert!((300..=360).contains(&admitted), "{admitted} in ten minutes of half the rate");
}

#[test]
fn a_server_that_starts_without_the_database_has_its_part() {
    let mut world = World::new(limits(Measure::Budget, 900), 3, None);
    world.crash(0);
    world.cut_off(0);
    let admitted = (0..100).filter(|_| world.request(0, 10, 10, false) == Outcome::Admitted);
    assert_eq!(admitted.count(), 30);
}

#[test]
fn headers_tell_what_all_servers_have_left() {
    use super::super::{slice::Mode, slices::Slices};
    let world = World::new(limits(Measure::Budget, 1_000), 1, None);
    let mut slices = Slices::new("k".into(), world.limits);
    let job = base::JobId::from_random(1);
    let charge = crate::Charge { tokens: 100, money: base::Money(0) };
    let standing = slices
        .reserve(job, charge, Mode::Away { servers: 1 }, world.now, &super::world::Count(1))
        .unwrap()
        .0;
    let gauge = standing.tokens.unwrap();
    assert_eq!((gauge.limit, gauge.remaining), (1_000, 900));
    assert!(gauge.reset <= Duration::from_secs(31 * 24 * 3_600) && standing.requests.is_none());
}

#[test]
fn a_gauge_shows_no_more_than_a_limit_that_was_lowered() {
    use std::time::Instant;

    use store::pools::{Answer, PoolId};

    use super::super::{
        share::Contact,
        slice::{Limit, Slice},
    };
    let (now, measure) = (Instant::now(), Measure::Tokens);
    let contact = Contact { free: 100, servers: 1, at: now };
    let mut slice = Slice::new(Limit { measure, most: 100, period: (0, 0) }, contact);
    let pool = PoolId { key: "k".into(), measure, began_ms: 0 };
    let used_up =
        Answer { pool, granted: 100, settled: 0, free: 0, idle: 0, short: true, next_ms: None };
    slice.answered(&used_up, 1, now);
    slice.limit.most = 10;
    let gauge = slice.gauge(now, Duration::ZERO);
    assert_eq!((gauge.limit, gauge.remaining, gauge.reset), (10, 10, Duration::ZERO));
}
