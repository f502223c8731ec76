//! Generated histories: whatever fails at whatever step, there is one owner in the end and never
//! two, and every acknowledged prompt is there once.

use proptest::{collection::vec, prelude::*};

use super::{super::DepartureInput, world::World};

/// The rounds without faults that settle everything.
const ROUNDS: usize = 40;

fn step(world: &mut World, what: u8) {
    let (owner, other) = (world.owner.is_up, world.other.is_up);
    match what {
        0 | 1 => world.prompt(),
        2 => world.turn(),
        3 | 4 => world.begin_move(),
        5 | 6 if owner => world.owner_hears(DepartureInput::Frozen),
        7 if owner => world.owner_hears(DepartureInput::GaveUp),
        8 | 9 => world.owner_keeps(true),
        10 => world.owner_keeps(false),
        11 if owner => world.owner_asks(),
        12..=15 if other => world.deliver_to_other(),
        16..=19 if owner => world.deliver_to_owner(),
        20 if other => drop(world.other_looks()),
        21 | 22 => world.other_keeps(true),
        23 => world.other_keeps(false),
        24 if other => world.other_asks(),
        25 | 26 => world.sync(),
        27 | 28 => world.kill_owner(what == 27),
        29 | 30 => world.kill_other(what == 29),
        31 => world.lose_staged(true),
        32 => world.lose_staged(false),
        33 | 34 => world.start_owner(),
        35 | 36 => world.start_other(),
        _ => {}
    }
}

/// Both are up, and nothing fails any more.
fn settle(world: &mut World) {
    for _ in 0..ROUNDS {
        world.start_owner();
        world.start_other();
        world.sync();
        world.owner_hears(DepartureInput::Frozen);
        world.owner_asks();
        world.other_asks();
        world.other_looks();
        for _ in 0..4 {
            world.deliver_to_other();
            world.other_keeps(true);
            world.deliver_to_owner();
            world.owner_keeps(true);
            world.check();
        }
        // It has a deadline for what comes before the session has left.
        world.owner_hears(DepartureInput::GaveUp);
    }
}

fn run(world: &mut World, steps: &[u8]) {
    for what in steps {
        step(world, *what);
        world.check();
    }
    settle(world);
    assert!(world.is_settled(), "a move is stuck: {world:?}");
    let all: Vec<u32> = (0..world.acknowledged).collect();
    let prompts = world.running().map(|session| session.prompts());
    assert_eq!(prompts, Some(all), "of the prompts, in order: {world:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn there_is_one_owner_and_no_turn_is_lost(steps in vec(0..37_u8, 0..120)) {
        run(&mut World::new(), &steps);
    }
}

/// A move without faults, up to the moment at which it is killed.
const STRAIGHT: [u8; 14] = [0, 2, 3, 0, 5, 12, 21, 16, 8, 25, 12, 21, 11, 12];

#[test]
fn a_kill_at_every_step_of_a_move_leaves_one_owner() {
    for end in 0..=STRAIGHT.len() {
        for fault in 27..=32 {
            let mut steps = STRAIGHT[..end].to_vec();
            // A disk loses things only while its member is down.
            steps.extend(if fault > 30 { vec![30, fault] } else { vec![fault] });
            run(&mut World::new(), &steps);
        }
    }
}

#[test]
fn a_move_without_faults_ends_at_the_other_member() {
    let mut world = World::new();
    run(&mut world, &STRAIGHT);
    assert!(world.other.runs && !world.owner.runs);
}

/// The other end has lost all that it knew of a move, and cannot store at first that it refuses.
#[test]
fn a_refusal_of_an_unknown_move_is_tried_again() {
    run(&mut World::new(), &[3, 5, 12, 21, 16, 27, 29, 31, 33, 35, 11, 12, 23]);
}

/// A rule that is broken is noticed: a refusal that is said and not stored, and forgotten with a
/// restart, lets an old version of the session give it a second owner.
#[test]
#[should_panic(expected = "two")]
fn a_refusal_that_is_not_stored_is_noticed() {
    let mut world = World::new();
    world.forgets_refusals = true;
    // It is staged and has left; its files are out of reach while the owner asks.
    let until_left = [3, 5, 12, 21, 16, 8, 25];
    for what in until_left {
        step(&mut world, what);
    }
    let staged = world.hide_staged();
    // The owner asks, hears the refusal, and owns again; then the files are back.
    for what in [12, 16, 8] {
        step(&mut world, what);
        world.check();
    }
    world.kill_other(false);
    world.show_staged(staged);
    world.start_other();
    world.other_looks();
    world.other_keeps(true);
    world.check();
}
