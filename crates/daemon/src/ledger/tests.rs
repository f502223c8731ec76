//! Rows are written in time, kept while the database fails, and lost only beyond the bound.

use std::thread;

use base::{Endpoint, JobId};
use store::{UsageQuery, VolatileStore};

use super::*;

fn entry(at_ms: u64) -> UsageEntry {
    UsageEntry {
        at_ms,
        job: JobId::from_random(at_ms.into()),
        key: "k".into(),
        model: "m".into(),
        served_model: None,
        provider: None,
        endpoint: Endpoint::ChatCompletions,
        outcome: "answered".into(),
        status: Some(200),
        prompt_tokens: Some(1),
        completion_tokens: Some(1),
        estimated: false,
        queue_ms: 0,
        first_byte_ms: None,
        total_ms: 0,
        streaming: false,
        requeues: 0,
        cost: None,
        resumes: None,
    }
}

fn ledger(time: Duration) -> (Arc<VolatileStore>, Arc<Ledger>) {
    let (store, now) = (Arc::new(VolatileStore::default()), Moment::now());
    let ages = AgeClock::open(Arc::<VolatileStore>::clone(&store), now.wall_ms, now.steady);
    let retention = Retention { time: Live::new(time), ages: Arc::new(ages.unwrap()) };
    let usage: Arc<dyn UsageStore> = Arc::<VolatileStore>::clone(&store);
    (store, Arc::new(Ledger::new(usage, retention, LedgerMetrics::default())))
}

fn writing(ledger: &Arc<Ledger>) -> thread::JoinHandle<()> {
    let ledger = Arc::clone(ledger);
    thread::spawn(move || ledger.write())
}

fn rows(store: &VolatileStore) -> u64 {
    store.usage(&UsageQuery::default()).unwrap().totals.requests
}

/// Waits until another thread has done something.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} never came");
        thread::yield_now();
    }
}

#[test]
fn closing_writes_waiting_rows_at_once() {
    let (store, ledger) = ledger(Duration::ZERO);
    let writer = writing(&ledger);
    (0..9_500).for_each(|at| ledger.push(entry(at)));
    ledger.close(Duration::from_secs(10));
    writer.join().unwrap();
    assert_eq!((rows(&store), ledger.metrics.lost.get()), (9_500, 0));
}

#[test]
fn rows_are_written_without_a_close() {
    let (store, ledger) = ledger(Duration::ZERO);
    let writer = writing(&ledger);
    ledger.push(entry(1));
    until("the row", || rows(&store) == 1);
    ledger.close(Duration::ZERO);
    writer.join().unwrap();
}

/// Takes the best of many runs, so that a busy machine does not fail the test.
#[test]
fn a_row_waits_no_longer_than_a_kill_may_cost() {
    let (store, ledger) = ledger(Duration::ZERO);
    let writer = writing(&ledger);
    let waited = |number: u64| {
        let began = Instant::now();
        ledger.push(entry(number));
        until("the row", || rows(&store) == number);
        began.elapsed()
    };
    let best = (1..=20).map(waited).min().unwrap();
    ledger.close(Duration::ZERO);
    writer.join().unwrap();
    assert!(best <= Duration::from_millis(50), "{best:?}");
}

#[test]
fn a_failing_database_is_reported_and_loses_nothing() {
    let (store, ledger) = ledger(Duration::ZERO);
    store.fail_writes(true);
    let writer = writing(&ledger);
    ledger.push(entry(1));
    until("the problem", || ledger.degraded().is_some());
    ledger.push(entry(2));
    assert!(ledger.degraded().unwrap().contains("told to fail"));
    store.fail_writes(false);
    until("its end", || ledger.degraded().is_none());
    ledger.close(Duration::from_secs(10));
    writer.join().unwrap();
    assert_eq!((rows(&store), ledger.metrics.lost.get()), (2, 0));
}

#[test]
fn a_database_that_never_comes_back_does_not_hold_up_the_end() {
    let (store, ledger) = ledger(Duration::ZERO);
    store.fail_writes(true);
    let writer = writing(&ledger);
    (0..3).for_each(|at| ledger.push(entry(at)));
    ledger.close(Duration::ZERO);
    writer.join().unwrap();
    assert_eq!((rows(&store), ledger.metrics.lost.get()), (0, 3));
}

#[test]
fn rows_over_the_bound_are_lost_and_counted() {
    let (store, ledger) = ledger(Duration::ZERO);
    (0..MAX_WAITING as u64 + 7).for_each(|at| ledger.push(entry(at)));
    assert_eq!(ledger.metrics.lost.get(), 7);
    let writer = writing(&ledger);
    ledger.close(Duration::from_secs(60));
    writer.join().unwrap();
    assert_eq!(rows(&store), MAX_WAITING as u64);
}

#[test]
fn old_rows_are_forgotten_unless_they_are_kept_for_ever() {
    let day = Duration::from_secs(86_400);
    for (retention, left) in [(day, 1), (Duration::ZERO, 3)] {
        let (store, ledger) = ledger(retention);
        let now = Moment::now();
        let before = |days: u64| now.wall_ms - days * 86_400_000;
        store.add_usage(&[entry(before(5)), entry(before(2)), entry(now.wall_ms)]).unwrap();
        ledger.forget(now);
        assert_eq!(rows(&store), left);
    }
}

#[test]
fn a_clock_that_jumps_ahead_deletes_nothing() {
    let day = Duration::from_secs(86_400);
    let (store, ledger) = ledger(day);
    let now = Moment::now();
    store.add_usage(&[entry(now.wall_ms)]).unwrap();
    let jumped =
        Moment { wall_ms: now.wall_ms + 400 * 86_400_000, ..now.after(Duration::from_secs(1)) };
    ledger.forget(jumped);
    assert_eq!(rows(&store), 1);
    // It is believed once the server has run for long enough with it: 400 days take more than eight.
    ledger.forget(Moment { wall_ms: jumped.wall_ms, steady: now.steady + day * 8 });
    assert_eq!(rows(&store), 0, "384 days have passed, and it is kept for one");
}
