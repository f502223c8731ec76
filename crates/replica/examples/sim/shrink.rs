//! A failing run, made shorter.

use crate::{plan::Plan, run, world::Mutant};

/// The most runs that shrinking may take.
const MOST_RUNS: usize = 2_000;

/// Drops steps, in ever smaller groups, and then what makes the network bad, while the run still
/// breaks the same rule.
pub(crate) fn shrunk(plan: &Plan, mutant: Mutant, fault: &str) -> Plan {
    let mut runs = 0;
    let mut fails = |plan: &Plan| {
        runs += 1;
        let result = run::run(plan, mutant);
        runs < MOST_RUNS && result.is_err_and(|other| kind(&other) == kind(fault))
    };
    let mut plan = plan.clone();
    let mut group = plan.steps.len().div_ceil(2);
    while group > 0 {
        let mut at = 0;
        while at < plan.steps.len() {
            let mut shorter = plan.clone();
            shorter.steps.drain(at..(at + group).min(shorter.steps.len()));
            if fails(&shorter) {
                plan = shorter;
            } else {
                at += group;
            }
        }
        group = if group == 1 { 0 } else { group.div_ceil(2) };
    }
    for milder in [mild, without_more_members] {
        let simpler = milder(&plan);
        if fails(&simpler) {
            plan = simpler;
        }
    }
    plan
}

/// A fault without its names and numbers.
fn kind(fault: &str) -> String {
    let words = fault.split_whitespace();
    words.filter(|word| word.len() > 2 && word.chars().all(char::is_alphabetic)).collect()
}

fn mild(plan: &Plan) -> Plan {
    Plan { lost: 0, doubled: 0, late_ms: 30, ..plan.clone() }
}

fn without_more_members(plan: &Plan) -> Plan {
    let members = plan.members.min(3);
    let edges =
        plan.edges.iter().copied().filter(|(one, other)| *one < members && *other < members);
    Plan { members, edges: edges.collect(), ..plan.clone() }
}
