//! Each limit, and all interleavings of jobs within a budget.

use base::{Budget, Period};
use proptest::prelude::*;

use super::*;

fn job(number: u128) -> JobId {
    JobId::from_random(number)
}

fn of(limits: KeyLimits) -> (Limits, Moment) {
    let now = Moment::now();
    (Limits::new(limits, now), now)
}

fn budget(tokens: u64) -> KeyLimits {
    let budget = Some(Budget { tokens, per: Period::Day });
    KeyLimits { budget, ..KeyLimits::default() }
}

#[test]
fn requests_at_the_same_time_are_let_in_as_others_end() {
    let (limits, now) = of(KeyLimits { concurrent: Some(2), ..KeyLimits::default() });
    limits.reserve(job(1), 1.into(), now).unwrap();
    limits.reserve(job(2), 1.into(), now).unwrap();
    let over = limits.reserve(job(3), 1.into(), now).unwrap_err();
    assert_eq!((over.limited, over.retry_after), (Limited::Concurrent(2), NEXT_FREE));
    limits.settle(job(3), 0.into(), now);
    assert!(limits.reserve(job(3), 1.into(), now).is_err(), "what was refused frees nothing");
    limits.settle(job(1), 0.into(), now);
    limits.reserve(job(3), 1.into(), now).unwrap();
}

#[test]
fn requests_a_minute_are_counted_only_when_let_in() {
    let limits = KeyLimits { rpm: Some(2), concurrent: Some(1), ..KeyLimits::default() };
    let (limits, now) = of(limits);
    let standing = limits.reserve(job(1), 1.into(), now).unwrap();
    assert_eq!(standing.requests.map(|gauge| gauge.remaining), Some(1));
    for _ in 0..5 {
        let over = limits.reserve(job(2), 1.into(), now).unwrap_err();
        assert_eq!(over.limited, Limited::Concurrent(1));
        assert_eq!(over.standing, standing, "told with every refusal");
    }
    limits.settle(job(1), 0.into(), now);
    limits.reserve(job(2), 1.into(), now).unwrap();
    limits.settle(job(2), 0.into(), now);
    let over = limits.reserve(job(3), 1.into(), now).unwrap_err();
    assert_eq!((over.limited, over.retry_after), (Limited::Requests(2), Duration::from_secs(30)));
    assert_eq!(over.standing.requests.map(|gauge| gauge.remaining), Some(0));
    limits.reserve(job(3), 1.into(), now.after(over.retry_after)).unwrap();
}

#[test]
fn tokens_a_minute_come_back() {
    let (limits, now) = of(KeyLimits { tpm: Some(60), ..KeyLimits::default() });
    limits.reserve(job(1), 10.into(), now).unwrap();
    limits.settle(job(1), 90.into(), now);
    let over = limits.reserve(job(2), 10.into(), now).unwrap_err();
    assert_eq!((over.limited, over.retry_after), (Limited::Tokens(60), Duration::from_secs(31)));
    let later = now.after(over.retry_after);
    let standing = limits.reserve(job(2), 1.into(), later).unwrap();
    assert_eq!(standing.tokens.map(|gauge| (gauge.limit, gauge.remaining)), Some((60, 0)));
}

#[test]
fn a_budget_is_told_and_ends_with_its_day() {
    let (limits, now) = of(budget(100));
    limits.restore(60.into(), now);
    let standing = limits.reserve(job(1), 15.into(), now).unwrap();
    assert_eq!(standing.tokens.map(|gauge| (gauge.limit, gauge.remaining)), Some((100, 25)));
    limits.settle(job(1), 40.into(), now);
    let over = limits.reserve(job(2), 1.into(), now).unwrap_err();
    assert!(matches!(over.limited, Limited::Budget(_)));
    assert!(over.retry_after <= Duration::from_secs(24 * 3600));
    limits.reserve(job(2), 1.into(), now.after(over.retry_after)).unwrap();
}

#[test]
fn an_absurd_estimate_is_let_in_alone() {
    let (limits, now) = of(budget(100));
    limits.reserve(job(1), u64::MAX.into(), now).unwrap();
    assert!(limits.reserve(job(2), 1.into(), now).is_err());
    limits.settle(job(1), 1.into(), now);
    limits.reserve(job(2), u64::MAX.into(), now).unwrap();
    limits.settle(job(2), u64::MAX.into(), now);
    assert!(limits.reserve(job(3), 1.into(), now).is_err());
}

/// A job in a generated history: its estimate, what it really uses, and how many others end
/// before the next one comes.
fn jobs() -> impl Strategy<Value = Vec<(u64, u64, usize)>> {
    prop::collection::vec((0..400u64, 0..400u64, 0..3usize), 1..200)
}

fn money(text: &str) -> KeyLimits {
    KeyLimits { budget_money: Some(text.parse().unwrap()), ..KeyLimits::default() }
}

fn charge(tokens: u64, millionths: u64) -> Charge {
    Charge { tokens, money: Money(millionths) }
}

#[test]
fn a_budget_in_money_is_named_and_ends_with_its_day() {
    let (limits, now) = of(money("0.0001USD/day"));
    limits.restore(charge(9_999, 60), now);
    let standing = limits.reserve(job(1), charge(500, 15), now).unwrap();
    assert_eq!(standing, Standing::default(), "headers are about tokens");
    limits.reserve(job(2), charge(500, 15), now).unwrap();
    limits.settle(job(1), charge(700, 40), now);
    let over = limits.reserve(job(3), charge(1, 1), now).unwrap_err();
    assert_eq!(over.to_string(), "this API key is limited to 0.0001 USD a day");
    limits.settle(job(2), charge(700, 0), now);
    assert!(limits.reserve(job(3), charge(1, 1), now).is_err(), "all is used");
    limits.reserve(job(4), charge(1, 0), now).unwrap();
    limits.reserve(job(3), charge(1, 1), now.after(over.retry_after)).unwrap();
}

#[test]
fn what_costs_nothing_is_let_in_until_the_money_is_used() {
    let (limits, now) = of(money("1USD/month"));
    for number in 1..50 {
        limits.reserve(job(number), charge(u64::MAX, 0), now).unwrap();
    }
}

proptest! {
    /// The budget is never overspent by more than the jobs in flight when the last one
    /// was admitted, and no job is refused while anything is left.
    #[test]
    fn parallel_jobs_overspend_by_no_more_than_what_is_in_flight(jobs in jobs()) {
        overspends_little(budget(BUDGET), Charge::from, jobs)?;
    }

    /// The same in money. A job without costs is always admitted, so each job costs something.
    #[test]
    fn parallel_jobs_overspend_money_by_no_more_than_what_is_in_flight(jobs in jobs()) {
        let jobs = jobs.into_iter().map(|(estimate, used, ending)| (estimate + 1, used, ending));
        overspends_little(money("0.001EUR/month"), |amount| charge(9, amount), jobs.collect())?;
    }
}

/// The budget of the generated histories, in tokens or in millionths.
const BUDGET: u64 = 1_000;

fn overspends_little(
    limits: KeyLimits,
    charge: impl Fn(u64) -> Charge,
    jobs: Vec<(u64, u64, usize)>,
) -> Result<(), TestCaseError> {
    let (limits, now) = of(limits);
    let (mut spent, mut open) = (0, Vec::<(JobId, u64, u64)>::new());
    let mut in_flight_at_last = 0;
    for (number, (estimate, used, ending)) in jobs.into_iter().enumerate() {
        let id = job(number as u128);
        let reserved: u64 = open.iter().map(|(_, estimate, _)| estimate.max(&1)).sum();
        match limits.reserve(id, charge(estimate), now) {
            Ok(_) => {
                prop_assert!(spent + reserved < BUDGET, "let in with nothing left");
                open.push((id, estimate, used));
                in_flight_at_last = open.iter().map(|(_, _, used)| used).sum();
            }
            Err(_) => prop_assert!(spent + reserved >= BUDGET, "refused with something left"),
        }
        for _ in 0..ending.min(open.len()) {
            let (id, _, used) = open.remove(0);
            limits.settle(id, charge(used), now);
            spent += used;
        }
    }
    spent += open.iter().map(|(_, _, used)| used).sum::<u64>();
    prop_assert!(spent < BUDGET + in_flight_at_last.max(1), "{} spent", spent);
    Ok(())
}
