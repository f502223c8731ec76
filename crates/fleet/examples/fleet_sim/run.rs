//! A whole run: the steps, then quiet, and what must be true then.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    net::{Account, Mutant},
    plan::Plan,
    world::World,
};

/// How long servers may take to see each other once nothing goes wrong any more.
const VIEWS: Duration = Duration::from_secs(3);
/// How long a home may take to be settled after that: it was gone a moment before, and a claim is made again.
const HOMES: Duration = Duration::from_secs(5);
/// How long jobs may take to end.
const JOBS: Duration = Duration::from_secs(60);
/// How long slots may take to come back after the last job: a lease, and the margin.
const SLOTS: Duration = Duration::from_secs(3);
/// Time for servers that start or go on after the last step.
const STARTS: Duration = Duration::from_secs(9);

/// Runs a plan. An error says which rule was broken.
pub(crate) fn run(plan: &Plan, mutant: Mutant) -> Result<Account, String> {
    let mut world = World::new(plan, mutant, false);
    live(&mut world).map(|()| world.net.account)
}

/// Runs a plan, and says everything that happened.
pub(crate) fn traced(plan: &Plan, mutant: Mutant) -> (Result<(), String>, Vec<String>) {
    let mut world = World::new(plan, mutant, true);
    let result = live(&mut world);
    (result, world.net.lines.take().unwrap_or_default())
}

fn live(world: &mut World<'_>) -> Result<(), String> {
    world.pass(Duration::from_millis(500))?;
    for step in &world.plan.steps {
        world.step(step)?;
    }
    pass_until(world, STARTS, |world| {
        world.servers.iter().all(|it| it.as_ref().is_some_and(|it| !it.is_paused))
    })?;
    (world.net.lost, world.net.doubled, world.net.late_ms) = (0, 0, 10);
    world.net.is_noisy = false;
    world.heal();
    world.net.say(|| "all is well from now on".to_owned());
    world.pass(VIEWS)?;
    check_views(world)?;
    world.pass(HOMES)?;
    check_rooms(world)?;
    pass_until(world, JOBS, |world| world.net.jobs.values().all(|it| it.outcome.is_some()))?;
    check_jobs(world)?;
    world.pass(SLOTS)?;
    check_slots(world)
}

/// Lets time pass until something holds, and no longer than this.
fn pass_until(
    world: &mut World<'_>,
    longest: Duration,
    holds: impl Fn(&World<'_>) -> bool,
) -> Result<(), String> {
    let end = world.net.now + longest;
    while world.net.now < end && !holds(world) {
        world.pass(Duration::from_millis(500))?;
    }
    Ok(())
}

fn check_views(world: &World<'_>) -> Result<(), String> {
    let all: BTreeSet<_> = world.servers.iter().flatten().map(|it| it.id).collect();
    for it in world.servers.iter().flatten() {
        let mut seen: BTreeSet<_> = it.members.fellows().map(|record| record.id).collect();
        seen.insert(it.id);
        if seen != all {
            return Err(format!("n{} sees {seen:?}, not {all:?}", it.node));
        }
    }
    Ok(())
}

/// Each room has one home, which all know.
fn check_rooms(world: &World<'_>) -> Result<(), String> {
    for (room, (placement, _)) in &world.net.rooms {
        let servers = || world.servers.iter().flatten();
        let homes: Vec<_> =
            servers().filter(|it| !it.ordered(std::iter::once(room)).is_empty()).collect();
        let names: Vec<_> = homes.iter().map(|it| it.node).collect();
        if names.len() != 1 || homes[0].id != placement.epoch.home {
            return Err(format!(
                "{room} is ordered by {names:?}, and its record says {placement:?}"
            ));
        }
        for it in servers().filter(|it| it.id != placement.epoch.home) {
            let home = it.homes.home(room);
            if home != fleet::room_homes::Home::Fellow(placement.epoch) {
                return Err(format!("n{} takes {home:?} for the home of {room}", it.node));
            }
        }
    }
    Ok(())
}

fn check_jobs(world: &World<'_>) -> Result<(), String> {
    match world.net.jobs.iter().find(|(_, it)| it.outcome.is_none()) {
        Some((job, it)) => Err(format!("{job} has no outcome: {it:?}")),
        None => Ok(()),
    }
}

fn check_slots(world: &World<'_>) -> Result<(), String> {
    for it in world.servers.iter().flatten() {
        let lent = it.worker.map_or(0, |(provider, _)| it.lending.lent(provider));
        let borrowed = it.borrowing.borrowed(it.now(&world.net));
        let at_worker = world.net.workers[it.node].1.len();
        let streams = it.exchanges.len();
        let is_idle =
            it.dispatcher.is_idle() && (lent, borrowed, at_worker, streams) == (0, 0, 0, 0);
        if !is_idle {
            return Err(format!(
                "at the end n{} lends {lent}, borrows {borrowed}, has {at_worker} jobs at its worker, \
                 {} at its dispatcher and {streams} streams",
                it.node,
                it.dispatcher.in_flight() + it.dispatcher.queue_depth()
            ));
        }
    }
    Ok(())
}
