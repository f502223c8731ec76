//! The simulator runs without a fault, and notices when a rule is missing: a simulator that finds nothing
//! proves nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "traces are for the program")]

#[path = "../examples/fleet_sim/exchange.rs"]
mod exchange;
#[path = "../examples/fleet_sim/net.rs"]
mod net;
#[path = "../examples/fleet_sim/plan.rs"]
mod plan;
#[path = "../examples/fleet_sim/run.rs"]
mod run;
#[path = "../examples/fleet_sim/server.rs"]
mod server;
#[path = "../examples/fleet_sim/serving.rs"]
mod serving;
#[path = "../examples/fleet_sim/world.rs"]
mod world;

use fleet::Rules;
use net::{Account, Mutant};
use plan::Plan;

/// How many seeds a missing rule may survive.
const MOST_SEEDS: u64 = 60;
/// How many seeds must notice it.
const ENOUGH: usize = 2;

#[test]
fn no_seed_breaks_a_rule_and_everything_happens() {
    let mut sum = Account::default();
    for seed in 0..60 {
        match run::run(&Plan::new(seed), Mutant::default()) {
            Ok(account) => sum.add(account),
            Err(fault) => panic!("seed {seed}: {fault}; `cargo xtask sim --fleet {seed}` shows it"),
        }
    }
    let Account {
        answered, through_fellows, refused, resent, recalls, adopted, yielded, left, ..
    } = sum;
    let counts = [answered, through_fellows, refused, resent, recalls, adopted, yielded, left];
    assert!(counts.into_iter().all(|count| count > 1), "{sum:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let plan = Plan::new(11);
    let first = run::traced(&plan, Mutant::default());
    assert!(first == run::traced(&plan, Mutant::default()));
}

/// How many seeds from this one on notice that a rule is missing, up to enough of them.
fn noticed_from(first: u64, mutant: Mutant) -> usize {
    let notices = |seed: &u64| run::run(&Plan::new(*seed), mutant).is_err();
    (first..first + MOST_SEEDS).filter(notices).take(ENOUGH).count()
}

fn noticed(mutant: Mutant) -> usize {
    noticed_from(0, mutant)
}

fn without(change: impl Fn(&mut Rules)) -> Mutant {
    let mut rules = Rules::default();
    change(&mut rules);
    Mutant { rules, ..Mutant::default() }
}

#[test]
fn leases_that_count_from_the_want_are_needed() {
    assert_eq!(noticed(without(|rules| rules.leases = false)), ENOUGH);
}

#[test]
fn the_margin_is_needed() {
    // Few leases end at the very moment at which a job is under way.
    assert_eq!(noticed_from(130, without(|rules| rules.margin = false)), ENOUGH);
}

#[test]
fn recalls_are_needed() {
    // Both sides must be busy for long.
    assert_eq!(noticed_from(200, without(|rules| rules.recall = false)), ENOUGH);
}

#[test]
fn holes_must_be_noticed() {
    assert_eq!(noticed(without(|rules| rules.gaps = false)), ENOUGH);
}

#[test]
fn compare_and_set_is_needed() {
    let mutant = Mutant { compare_and_set: false, ..Mutant::default() };
    assert_eq!(noticed_from(40, mutant), ENOUGH);
}
