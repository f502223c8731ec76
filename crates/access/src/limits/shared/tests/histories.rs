//! The rules that hold in generated histories: servers that are cut off, late, killed and back; rows that come when
//! they come.

use proptest::{prelude::*, test_runner::Config};
use store::pools::Measure;

use super::world::{Outcome, Rule, World, limits};

const SERVERS: usize = 3;
const MOST: u64 = 1_000;

#[derive(Debug, Clone)]
enum Step {
    /// A request that ends at once.
    Job(usize, u64),
    Request(usize, u64, u64, bool),
    End(usize),
    Speak(usize),
    Send(usize),
    LoseAnswer(usize),
    Delay(usize),
    ComeLate(usize),
    Recall(usize),
    Row(usize),
    CutOff(usize),
    Reconnect(usize),
    Crash(usize),
    Pass(u64),
}

fn step(faults: bool) -> impl Strategy<Value = Step> {
    let at = 0..SERVERS;
    let usual = prop_oneof![
        8 => (at.clone(), 0..90u64, 0..120u64, prop::bool::weighted(0.2))
            .prop_map(|(at, estimate, uses, late)| Step::Request(at, estimate, uses, late)),
        6 => at.clone().prop_map(Step::End),
        8 => at.clone().prop_map(Step::Speak),
        3 => at.clone().prop_map(Step::Row),
        2 => at.clone().prop_map(Step::Recall),
        3 => (0..2_500u64).prop_map(Step::Pass),
    ];
    let fault = prop_oneof![
        2 => at.clone().prop_map(Step::Send),
        2 => at.clone().prop_map(Step::LoseAnswer),
        2 => at.clone().prop_map(Step::Delay),
        2 => at.clone().prop_map(Step::ComeLate),
        3 => at.clone().prop_map(Step::Reconnect),
        1 => at.prop_map(Step::Crash),
        1 => (5_000..20_000u64).prop_map(Step::Pass),
    ];
    if faults { prop_oneof![4 => usual, 1 => fault].boxed() } else { usual.boxed() }
}

/// Of requests that end at once: so little is in flight, and the bound is tight.
fn quick() -> impl Strategy<Value = Vec<Step>> {
    let job = (0..SERVERS, 1..60u64).prop_map(|(at, amount)| Step::Job(at, amount));
    let other =
        step(true).prop_filter("a request that stays", |step| !matches!(step, Step::Request(..)));
    let silence = Just(Step::Pass(16_000));
    prop::collection::vec(prop_oneof![30 => job, 20 => other, 1 => silence], 1..400)
}

/// With servers that are cut off, and use their shares.
fn histories() -> impl Strategy<Value = Vec<Step>> {
    let cut_off = (0..SERVERS).prop_map(Step::CutOff);
    prop::collection::vec(prop_oneof![30 => step(true), 1 => cut_off], 1..250)
}

fn apply(world: &mut World, step: &Step) {
    match *step {
        Step::Job(at, amount) => {
            if world.request(at, amount, amount, false) == Outcome::Admitted {
                world.end_newest(at);
            }
        }
        Step::Request(at, estimate, uses, late) => {
            world.request(at, estimate, uses, late);
        }
        Step::End(at) => world.end_job(at),
        Step::Speak(at) => world.speak(at),
        Step::Send(at) => world.send(at),
        Step::LoseAnswer(at) => {
            world.send(at);
            world.deliver(at, false);
            world.reconnect(at);
        }
        Step::Delay(at) => {
            world.send(at);
            world.delay(at);
            world.reconnect(at);
        }
        Step::ComeLate(at) => world.come_late(at),
        Step::Recall(at) => world.recall(at),
        Step::Row(at) => world.send_row(at),
        Step::CutOff(at) => world.cut_off(at),
        Step::Reconnect(at) => world.reconnect(at),
        Step::Crash(at) => world.crash(at),
        Step::Pass(millis) => world.pass(millis),
    }
}

/// Whether a budget is overspent by more than: what was in flight at each server when it last admitted a job; what a
/// server has used of its slice and not told for 15 s; the share of a server that is cut off.
fn is_overspent(world: &mut World) -> bool {
    world.settle_down();
    world.used() > MOST + world.in_flight_at_last() + world.unheard
}

/// One server uses a part of a budget and holds more, `then` something happens, another uses all that is left, and
/// the first what it holds.
fn is_overspent_without(rule: Option<Rule>, then: impl Fn(&mut World)) -> bool {
    let mut world = World::new(limits(Measure::Budget, MOST), SERVERS, rule);
    world.work(0, 20);
    then(&mut world);
    world.drain(1);
    world.use_up(0);
    is_overspent(&mut world)
}

#[test]
fn without_the_order_of_reports_a_budget_is_overspent() {
    let late = |world: &mut World| {
        world.pass(4_000);
        world.send(0);
        world.delay(0);
        world.reconnect(0);
        world.work(0, 20);
        world.come_late(0);
    };
    assert!(is_overspent_without(Some(Rule::Order), late) && !is_overspent_without(None, late));
}

#[test]
fn without_regard_to_what_others_hold_a_budget_is_overspent() {
    let nothing = |_: &mut World| {};
    assert!(
        is_overspent_without(Some(Rule::Held), nothing) && !is_overspent_without(None, nothing)
    );
}

#[test]
fn with_a_slice_that_is_used_after_a_long_silence_a_budget_is_overspent() {
    let silence = |world: &mut World| world.pass(16_000);
    assert!(is_overspent_without(Some(Rule::Silence), silence));
    assert!(!is_overspent_without(None, silence));
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(300) })]

    #[test]
    fn a_budget_is_overspent_by_no_more_than_what_is_said(
        steps in prop_oneof![histories().boxed(), quick().boxed()],
    ) {
        let mut world = World::new(limits(Measure::Budget, MOST), SERVERS, None);
        steps.iter().for_each(|step| apply(&mut world, step));
        prop_assert!(!is_overspent(&mut world), "{} used", world.used());
    }

    /// Servers that lose the database at the same time have shares of what was free then.
    #[test]
    fn an_outage_for_all_overspends_nothing(
        before in prop::collection::vec(step(false), 1..80),
        during in prop::collection::vec((0..SERVERS, 1..90u64, any::<bool>()), 1..200),
    ) {
        let mut world = World::new(limits(Measure::Budget, MOST), SERVERS, None);
        before.iter().for_each(|step| apply(&mut world, step));
        world.rest();
        (0..SERVERS).for_each(|at| world.cut_off(at));
        for (at, estimate, ends) in during {
            world.request(at, estimate, estimate, false);
            if ends {
                world.end_job(at);
            }
            world.pass(400);
        }
        world.settle_down();
        // The first to ask did not know what the others then took: a few tokens.
        let most = MOST + world.in_flight_at_last() + 3 * SERVERS as u64;
        prop_assert!(world.used() <= most, "{} of {most}", world.used());
    }

    /// While the database is there: a request is refused only when all is used or reserved. What others hold and do
    /// not use is given back for it within a second, and what was told a second ago is asked again.
    #[test]
    fn nothing_is_refused_while_something_is_left(
        steps in prop::collection::vec((0..SERVERS, 0..90u64, 0..90u64, 0..3usize, 0..900u64), 1..120),
    ) {
        let mut world = World::new(limits(Measure::Budget, MOST), SERVERS, None);
        for (at, estimate, uses, ends, pause) in steps {
            let uses = uses.min(estimate);
            if world.patient_request(at, estimate, uses) == Outcome::Refused {
                world.pass(1_000);
                (0..SERVERS).for_each(|other| world.speak(other));
                let outcome = world.patient_request(at, estimate, uses);
                prop_assert!(outcome == Outcome::Admitted || world.busy() >= MOST, "{} busy", world.busy());
            }
            (0..ends).for_each(|_| world.end_job(at));
            world.send_row(at);
            world.pass(pause);
            (0..SERVERS).for_each(|other| world.speak(other));
        }
        world.settle_down();
        prop_assert!(world.used() <= MOST + world.in_flight_at_last());
    }

    /// Whatever has happened: when all is over, nobody holds anything.
    #[test]
    fn everything_is_given_back_in_the_end(steps in histories(), which in 0..Measure::ALL.len()) {
        let mut world = World::new(limits(Measure::ALL[which], MOST), SERVERS, None);
        steps.iter().for_each(|step| apply(&mut world, step));
        world.settle_down();
        prop_assert_eq!(world.held(), 0);
        prop_assert!(world.is_quiet());
    }

    /// The amount that comes back with time is never given twice: a minute's worth at once, then evenly.
    #[test]
    fn a_rate_holds(steps in prop::collection::vec(step(true), 1..250), of_tokens: bool) {
        let measure = if of_tokens { Measure::Tokens } else { Measure::Requests };
        let most = 60;
        let mut world = World::new(limits(measure, most), SERVERS, None);
        let (began, mut admitted) = (world.now.wall_ms, 0);
        for step in &steps {
            if let Step::Request(at, _, _, late) = *step {
                if !world.servers[at].away {
                    admitted += u64::from(world.request(at, 1, 1, late) == Outcome::Admitted);
                }
            } else {
                apply(&mut world, step);
            }
        }
        let passed = world.now.wall_ms - began;
        prop_assert!(admitted <= most + most * passed / 60_000, "{admitted} in {passed} ms");
    }

    /// Requests at the same time, as long as each server is heard of.
    #[test]
    fn no_more_requests_run_at_the_same_time(steps in prop::collection::vec(step(true), 1..250)) {
        let most = 7;
        let mut world = World::new(limits(Measure::Concurrent, most), SERVERS, None);
        for step in &steps {
            match *step {
                Step::Pass(millis) => world.pass(millis.min(900)),
                ref other => apply(&mut world, other),
            }
            (0..SERVERS).for_each(|at| world.keep_in_touch(at));
            let open: usize = world.servers.iter().map(|server| server.open.len()).sum();
            prop_assert!(open as u64 <= most, "{open} at once");
        }
    }
}
