//! The simulator runs without a fault, and notices when a rule is missing: a simulator that finds
//! nothing proves nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "traces and shrinking are for the program")]

#[path = "../examples/sim/acts.rs"]
mod acts;
#[path = "../examples/sim/disk.rs"]
mod disk;
#[path = "../examples/sim/model.rs"]
mod model;
#[path = "../examples/sim/network.rs"]
mod network;
#[path = "../examples/sim/plan.rs"]
mod plan;
#[path = "../examples/sim/run.rs"]
mod run;
#[path = "../examples/sim/trace.rs"]
mod trace;
#[path = "../examples/sim/world.rs"]
mod world;

use plan::Plan;
use replica::Rules;
use world::Mutant;

/// How many seeds a missing rule may survive.
const MOST_SEEDS: u64 = 400;
/// How many seeds must notice it.
const ENOUGH: usize = 3;

#[test]
fn no_seed_breaks_a_rule() {
    for seed in 0..60 {
        if let Err(fault) = run::run(&Plan::new(seed), Mutant::default()) {
            panic!("seed {seed}: {fault}; `cargo xtask sim {seed}` tells it");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let plan = Plan::new(11);
    assert_eq!(run::traced(&plan, Mutant::default()), run::traced(&plan, Mutant::default()));
}

/// The seeds that notice that a rule is missing, up to enough of them.
fn noticed(mutant: Mutant) -> Vec<u64> {
    let notices = |seed: &u64| run::run(&Plan::new(*seed), mutant).is_err();
    (0..MOST_SEEDS).filter(notices).take(ENOUGH).collect()
}

fn without(change: impl Fn(&mut Rules)) -> Mutant {
    let mut rules = Rules::default();
    change(&mut rules);
    Mutant { rules, ..Mutant::default() }
}

#[test]
fn births_are_needed() {
    assert_eq!(noticed(without(|rules| rules.births = false)).len(), ENOUGH);
}

#[test]
fn floors_are_needed() {
    assert_eq!(noticed(without(|rules| rules.floors = false)).len(), ENOUGH);
}

#[test]
fn holding_is_needed() {
    assert_eq!(noticed(without(|rules| rules.held = false)).len(), ENOUGH);
}

#[test]
fn joining_only_whole_pulls_is_needed() {
    assert_eq!(noticed(without(|rules| rules.whole_pulls = false)).len(), ENOUGH);
}

#[test]
fn reassertion_is_needed() {
    assert_eq!(noticed(without(|rules| rules.reassertion = false)).len(), ENOUGH);
}

#[test]
fn incarnations_are_needed() {
    let mutant = Mutant { one_incarnation: true, ..Mutant::default() };
    assert_eq!(noticed(mutant).len(), ENOUGH);
}
