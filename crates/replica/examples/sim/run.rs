//! A whole run: the steps, then quiet, and what must be true then.

use std::time::Duration;

use replica::Kind;

use crate::{
    plan::Plan,
    trace::Trace,
    world::{Account, Mutant, World},
};

/// How long members may take to become equal once nothing goes wrong any more. A pull that was cut
/// off waits 10 s, and so does an owner that saw its id twice.
const PATIENCE_S: u64 = 90;
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Runs a plan. An error says which rule was broken.
pub(crate) fn run(plan: &Plan, mutant: Mutant) -> Result<Account, String> {
    let mut world = World::new(plan, mutant, Trace::default());
    let result = live(&mut world);
    result.map(|()| Account { messages: world.network.messages, ..world.account })
}

/// Runs a plan, and says everything that happened.
pub(crate) fn traced(plan: &Plan, mutant: Mutant) -> (Result<(), String>, Vec<String>) {
    let mut world = World::new(plan, mutant, Trace::on());
    let result = live(&mut world);
    (result, world.trace.lines().to_vec())
}

fn live(world: &mut World<'_>) -> Result<(), String> {
    if world.plan.begins_equal {
        world.network.be_kind();
        settle(world, "at the beginning")?;
        world.network.be_bad(world.plan);
    }
    for step in &world.plan.steps {
        world.pass(Duration::from_millis(step.wait_ms));
        world.act(step);
        if world.plan.check_each {
            check_claims(world)?;
        }
        broken(world)?;
    }
    become_quiet(world);
    settle(world, "after quiet")?;
    let are_clocks_right = world.plan.seed.is_multiple_of(2) || world.plan.to_the_end;
    if are_clocks_right {
        world.nodes.iter_mut().for_each(|node| node.ahead_ms = 0);
        apart(world, HOUR * 2, 12)?;
        settle(world, "when clocks are right")?;
        check_shown(world)?;
    }
    if world.plan.to_the_end {
        let long = 60 * (world.plan.members as u64 + 2);
        apart(world, DAY * 91, long)?;
        apart(world, DAY * 8, long)?;
        settle(world, "at the end")?;
        check_short(world)?;
    }
    Ok(())
}

fn broken(world: &World<'_>) -> Result<(), String> {
    world.broken.clone().map_or(Ok(()), Err)
}

fn become_quiet(world: &mut World<'_>) {
    world.trace.say(world.network.now, || "── quiet");
    world.network.be_kind();
    world.stop_clones();
    for member in 0..world.plan.members {
        world.nodes[member].disk.is_slow = false;
        world.start(member);
    }
    world.dial_all();
}

/// Time passes without links, and then with them.
fn apart(world: &mut World<'_>, time: Duration, linked_s: u64) -> Result<(), String> {
    world.close_all();
    world.sleep(time);
    world.dial_all();
    world.pass(Duration::from_secs(linked_s));
    broken(world)
}

/// Waits until all members are equal and as they must be.
fn settle(world: &mut World<'_>, when: &str) -> Result<(), String> {
    let mut fault = String::new();
    for _ in 0..PATIENCE_S {
        world.pass(Duration::from_secs(1));
        broken(world)?;
        match check_equal(world).and_then(|()| check_sessions(world)) {
            Ok(()) => return check_claims(world),
            Err(why) => fault = why,
        }
    }
    Err(format!("{when}: {fault}"))
}

fn check_equal(world: &World<'_>) -> Result<(), String> {
    let first = world.replica(0).ok_or("n0 is down")?;
    for member in 1..world.plan.members {
        let other = world.replica(member).ok_or("a member is down")?;
        if other.noted() != first.noted() {
            let (one, other) = (first.noted(), other.noted());
            return Err(format!("contexts of n0 and n{member} differ: {one:?} {other:?}"));
        }
        if other.print() != first.print() {
            return Err(format!("objects of n0 and n{member} differ"));
        }
    }
    Ok(())
}

/// Every member has the greatest of the writes that it has noted.
fn check_claims(world: &mut World<'_>) -> Result<(), String> {
    for member in 0..world.nodes.len() {
        let Some(replica) = world.replica(member) else { continue };
        let result = world.model.check(replica);
        world.account.checks += 1;
        result.map_err(|fault| format!("n{member}: {fault}"))?;
    }
    Ok(())
}

/// The sessions of every member are shown everywhere as it runs them, and no others.
fn check_sessions(world: &World<'_>) -> Result<(), String> {
    for (owner, node) in world.nodes.iter().enumerate().take(world.plan.members) {
        let own = world.replica(owner).ok_or("a member is down")?;
        let runs =
            node.running.iter().filter(|(key, _)| own.runs(key) || !world.moved.contains(*key));
        let runs: Vec<_> = runs.map(|(key, running)| (key, &running.value)).collect();
        for member in 0..world.plan.members {
            let replica = world.replica(member).ok_or("a member is down")?;
            let shown =
                replica.entries_of(Kind::SESSION).filter(|(_, entry)| entry.owner == node.id);
            let shown: Vec<_> = shown.map(|(key, entry)| (key, &entry.value)).collect();
            if shown != runs {
                return Err(format!("n{owner} runs {runs:?}; n{member} shows {shown:?}"));
            }
        }
    }
    Ok(())
}

/// Nothing is held, and all show the same.
fn check_shown(world: &World<'_>) -> Result<(), String> {
    let first: Vec<_> = world.replica(0).ok_or("n0 is down")?.entries().collect();
    for member in 0..world.plan.members {
        let replica = world.replica(member).ok_or("a member is down")?;
        if replica.figures().held > 0 {
            return Err(format!("n{member} still holds something"));
        }
        if !replica.entries().eq(first.iter().copied()) {
            return Err(format!("n0 and n{member} show different objects"));
        }
    }
    Ok(())
}

/// No tombstone is left, and at most one incarnation of each member.
fn check_short(world: &World<'_>) -> Result<(), String> {
    for member in 0..world.plan.members {
        let figures = world.replica(member).ok_or("a member is down")?.figures();
        if figures.tombstones > 0 || figures.incarnations > world.plan.members {
            return Err(format!("at the end n{member} has {figures:?}"));
        }
    }
    Ok(())
}
