//! How long a ledger of a million rows takes to write and to answer: `cargo run --release -p store
//! --example million`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a measurement fails by panicking, and tells its times"
)]

use std::time::{Duration, Instant};

use base::{Endpoint, JobId, UsageBy};
use store::{SqliteStore, UsageEntry, UsageQuery, UsageStore};

const ROWS: u64 = 1_000_000;
const BATCH: u64 = 1_000;
const DAY: u64 = 86_400_000;

/// One of a million jobs over so many days: 50 keys, 12 models, 8 providers.
fn entry(number: u64, days: u64) -> UsageEntry {
    // Neither of the divisors goes into another: the combinations are mixed.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    UsageEntry {
        at_ms: 1_700_000_000_000 / DAY * DAY + number * days * DAY / ROWS,
        job: JobId::from_random(number.into()),
        key: format!("k-{:016x}", mixed % 50).as_str().into(),
        model: format!("family/model-{}", mixed / 50 % 12).as_str().into(),
        served_model: None,
        provider: Some(format!("gpu-{}", mixed / 600 % 8).into()),
        endpoint: Endpoint::ChatCompletions,
        outcome: "answered",
        status: Some(200),
        prompt_tokens: Some(900),
        completion_tokens: Some(300),
        estimated: number.is_multiple_of(100),
        queue_ms: 3,
        first_byte_ms: Some(120),
        total_ms: 4_000,
        streaming: true,
        requeues: 0,
        cost: None,
    }
}

fn filled(store: &SqliteStore, days: u64) -> Duration {
    let mut slowest = Duration::ZERO;
    for first in (0..ROWS).step_by(BATCH as usize) {
        let batch: Vec<_> = (first..first + BATCH).map(|number| entry(number, days)).collect();
        let began = Instant::now();
        store.add_usage(&batch).unwrap();
        slowest = slowest.max(began.elapsed());
    }
    slowest
}

fn asked(store: &SqliteStore, by: &[UsageBy], since_ms: Option<u64>) {
    let query = UsageQuery { by: by.to_vec(), since_ms, ..UsageQuery::default() };
    let began = Instant::now();
    let answer = store.usage(&query).unwrap();
    let (groups, requests) = (answer.groups.len(), answer.totals.requests);
    eprintln!(
        "  by {by:?} since {since_ms:?}: {groups} groups, {requests} jobs, {:?}",
        began.elapsed()
    );
}

fn main() {
    for days in [365, 30, 1] {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("warren.db")).unwrap();
        let began = Instant::now();
        let slowest = filled(&store, days);
        eprintln!("{days} days: {:?} to write, the slowest batch {slowest:?}", began.elapsed());
        let odd = 1_700_000_000_000 / DAY * DAY + 1_234_567;
        for since in [None, Some(odd)] {
            asked(&store, &[], since);
            asked(&store, &[UsageBy::Key], since);
            asked(&store, &[UsageBy::Key, UsageBy::Model, UsageBy::Provider], since);
            asked(&store, &[UsageBy::Day], since);
        }
        let began = Instant::now();
        store.forget_usage(u64::MAX, 5_000).unwrap();
        eprintln!("  5000 rows forgotten in {:?}", began.elapsed());
    }
}
