//! The effect of reports on a pool.

use proptest::prelude::*;

use super::*;

fn report(settled: u64, reserved: u64, keep: u64, need: u64) -> Report {
    let pool = PoolId { key: "k".into(), measure: Measure::Budget, began_ms: 0 };
    Report { pool, limit: 0, ends_ms: 0, settled: Some(settled), reserved, keep, need }
}

fn budget(limit: u64, used: u64, others: &[Slice]) -> Pool {
    let stock = Stock::Budget { limit, used };
    Pool { stock, own: Slice::default(), others: others.to_vec(), servers: 2 }
}

fn slice(granted: u64, settled: u64, reserved: u64, taken: u64) -> Slice {
    Slice { granted, settled, reserved, taken }
}

#[test]
fn what_is_needed_is_given_and_beyond_that_a_part_of_what_is_free() {
    let mut pool = budget(1_000, 100, &[slice(300, 0, 0, 0)]);
    let answer = pool.take(&report(0, 0, 500, 50));
    assert_eq!((answer.granted, answer.free, answer.idle), (150, 450, 300), "a quarter of 600");
    let answer = pool.take(&report(0, 150, 400, 400));
    assert_eq!((answer.granted, answer.free, answer.short), (550, 50, false));
    let answer = pool.take(&report(0, 550, 90, 90));
    assert_eq!((answer.granted, answer.free, answer.short), (600, 0, true));
}

#[test]
fn rows_of_the_ledger_take_the_place_of_what_was_told() {
    let mut pool = budget(1_000, 0, &[]);
    assert_eq!(pool.take(&report(0, 0, 400, 400)).granted, 400);
    let before = pool.take(&report(300, 0, 100, 0)).free;
    pool.own.taken = 300;
    pool.stock = Stock::Budget { limit: 1_000, used: 300 };
    assert_eq!((pool.take(&report(300, 0, 100, 0)).free, before), (600, 600));
}

#[test]
fn what_was_used_beyond_a_slice_counts_and_is_no_right_to_more() {
    let mut pool = budget(1_000, 0, &[]);
    pool.take(&report(0, 0, 100, 100));
    let answer = pool.take(&report(700, 0, 0, 0));
    assert_eq!((answer.granted, answer.free), (700, 300));
    let answer = pool.take(&report(700, 900, 1, 1));
    assert_eq!((answer.free, answer.short), (0, true), "jobs in flight have all that is left");
}

#[test]
fn a_slice_that_nobody_holds_any_more_is_free_but_for_what_was_used() {
    let left = slice(500, 120, 200, 100).abandoned();
    assert_eq!(budget(1_000, 100, &[left]).take(&report(0, 0, 0, 0)).free, 880);
    let places = |other: Slice| {
        let (stock, own) = (Stock::Places { limit: 4 }, Slice::default());
        Pool { stock, own, others: vec![other], servers: 2 }.take(&report(0, 0, 0, 0)).free
    };
    assert_eq!((places(slice(3, 0, 2, 0)), places(slice(3, 0, 2, 0).abandoned())), (1, 4));
}

#[test]
fn a_report_that_comes_late_takes_nothing_back() {
    let mut pool = budget(1_000, 0, &[]);
    pool.take(&report(700, 0, 0, 0));
    assert_eq!(pool.take(&report(300, 0, 0, 0)).settled, 700);
    let mut unaware = report(0, 50, 10, 10);
    unaware.settled = None;
    let answer = pool.take(&unaware);
    assert_eq!((answer.settled, answer.granted), (700, 760));
}

fn rate(level: i64, others: &[Slice]) -> Pool {
    let stock = Stock::Rate { limit: 60, level: Level(level * PARTS) };
    Pool { stock, own: Slice::default(), others: others.to_vec(), servers: 1 }
}

#[test]
fn a_rate_refills_in_a_minute_and_no_further() {
    let level = |before, passed| Stock::refilled(60, before, passed).level().unwrap().0;
    assert_eq!(level(None, 5), 60 * PARTS);
    assert_eq!(level(Some(Level(0)), 1_000), PARTS);
    assert_eq!(level(Some(Level(-PARTS)), 30_000), 29 * PARTS);
    assert_eq!(level(Some(Level(0)), u64::MAX), 60 * PARTS);
    assert_eq!(Stock::refilled(u64::MAX, None, u64::MAX).level(), Some(Level(i64::MAX)));
}

#[test]
fn what_is_held_idle_and_what_there_is_are_one_minutes_worth() {
    let mut pool = rate(60, &[slice(50, 30, 0, 0)]);
    assert_eq!(pool.take(&report(0, 0, 0, 0)).free, 40);
    let answer = pool.take(&report(0, 0, 60, 60));
    assert_eq!((answer.granted, answer.free, answer.next_ms), (40, 0, Some(1_000)));
    assert_eq!(pool.take(&report(10, 0, 5, 0)).free, 25, "the rest is back");
}

#[test]
fn a_rate_that_was_overdrawn_waits_longer() {
    let mut pool = rate(10, &[]);
    pool.take(&report(0, 0, 10, 10));
    let answer = pool.take(&report(70, 0, 1, 1));
    assert_eq!((answer.short, answer.next_ms), (true, Some(61_000)));
}

proptest! {
    /// Whatever servers say: used, in flight and idle together never exceed the pool because of a grant.
    #[test]
    fn a_grant_is_never_more_than_was_free(
        limit in 0..2_000u64, used in 0..1_000u64, reports in prop::collection::vec((0..4usize, 0..900u64, 0..900u64, 0..900u64, 0..900u64), 1..40),
    ) {
        let mut slices = [Slice::default(); 4];
        for (who, settled, reserved, keep, need) in reports {
            let others = slices.iter().enumerate().filter(|(at, _)| *at != who).map(|(_, it)| *it);
            let stock = Stock::Budget { limit, used };
            let mut pool = Pool { stock, own: slices[who], others: others.collect(), servers: 4 };
            let before = slices[who].granted;
            let answer = pool.take(&report(settled, reserved, keep, need));
            let settled = answer.settled.saturating_sub(before);
            let raised = answer.granted.saturating_sub(before);
            slices[who] = pool.own;
            let held: u64 = slices.iter().map(|slice| slice.granted).sum();
            prop_assert!(raised <= settled || used + held <= limit, "{answer:?}");
            prop_assert!(answer.short || answer.granted >= answer.settled + reserved + need);
        }
    }

    /// No report asks in vain while there is enough, and none takes what it did not ask for.
    #[test]
    fn what_is_free_is_given(limit in 1..2_000u64, reserved in 0..500u64, keep in 0..900u64, need in 0..900u64) {
        let mut pool = budget(limit, 0, &[]);
        let answer = pool.take(&report(0, reserved, keep, need));
        prop_assert_eq!(answer.short, reserved + need > limit);
        prop_assert!(answer.granted <= reserved + keep.max(need));
    }
}
