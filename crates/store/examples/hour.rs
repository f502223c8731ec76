//! An hour of a busy server, on a clock that runs faster: a million rows of usage, of which those older than ten
//! minutes are forgotten, while keys are changed and the ledger is asked for its sums. Prints the mean and the longest
//! time that each of these took. The argument says how many times as fast the clock runs (60 if it is left out):
//! `cargo run --release -p store --example hour -- 60`.
//!
//! Requests themselves wait for none of this: their rows are queued in memory. A caller that changes a key waits for
//! the batch that is being written.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a measurement fails by panicking, tells its times, and sleeps on threads of its own"
)]

use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use base::{Endpoint, JobId, KeyId, UsageBy};
use store::{KeyStore, SqliteStore, UsageEntry, UsageQuery, UsageStore};

const ROWS: u64 = 1_000_000;
const HOUR_MS: u64 = 3_600_000;
const BEGIN_MS: u64 = 1_700_000_000_000;
/// These two are those of the ledger: the time in which it gathers a batch, and the most rows that it forgets at once.
const GATHER: Duration = Duration::from_millis(40);
const FORGOTTEN: usize = 5_000;
const KEPT_MS: u64 = 600_000;

/// A job of one of 10,000 keys, 200 models and 500 workers, in a mixed order.
fn entry(number: u64) -> UsageEntry {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    UsageEntry {
        at_ms: BEGIN_MS + number * HOUR_MS / ROWS,
        job: JobId::from_random(number.into()),
        key: key(mixed % 10_000),
        model: format!("family/model-{}", mixed % 200).as_str().into(),
        served_model: None,
        provider: Some(format!("gpu-{}", mixed / 200 % 500).into()),
        endpoint: Endpoint::ChatCompletions,
        outcome: "answered".into(),
        status: Some(200),
        prompt_tokens: Some(900),
        completion_tokens: Some(300),
        estimated: false,
        queue_ms: 3,
        first_byte_ms: Some(120),
        total_ms: 4_000,
        streaming: true,
        requeues: 0,
        cost: None,
        resumes: None,
    }
}

fn key(number: u64) -> KeyId {
    format!("k-{number:016x}").as_str().into()
}

/// How long calls took.
#[derive(Default)]
struct Calls {
    count: u64,
    sum: Duration,
    longest: Duration,
}

impl Calls {
    fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = call();
        let took = begun.elapsed();
        (self.count, self.sum) = (self.count + 1, self.sum + took);
        self.longest = self.longest.max(took);
        result
    }

    fn tell(&self, what: &str) {
        let mean = self.sum / u32::try_from(self.count.max(1)).unwrap();
        eprintln!("  {what}: {} times, {mean:?} each, the longest {:?}", self.count, self.longest);
    }
}

/// Writes the rows of the time that has passed, as the ledger's thread does.
fn write(store: &SqliteStore, speed: u64, done: &AtomicU64) -> [Calls; 2] {
    let (mut add, mut forget) = (Calls::default(), Calls::default());
    let (begun, mut written) = (Instant::now(), 0);
    while written < ROWS {
        thread::sleep(GATHER);
        let passed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap() * speed;
        let due = (passed_ms * ROWS / HOUR_MS).min(ROWS).min(written + 4_000);
        let batch: Vec<_> = (written..due).map(entry).collect();
        add.time(|| store.add_usage(&batch)).unwrap();
        written = due;
        done.store(written, Ordering::Relaxed);
        let oldest = (BEGIN_MS + written * HOUR_MS / ROWS).saturating_sub(KEPT_MS);
        if oldest > BEGIN_MS {
            forget.time(|| store.forget_usage(oldest, FORGOTTEN)).unwrap();
        }
    }
    [add, forget]
}

fn sums(store: &SqliteStore) -> u64 {
    let query = UsageQuery { by: vec![UsageBy::Key], ..UsageQuery::default() };
    store.usage(&query).unwrap().totals.requests
}

fn log_size(path: &Path) -> u64 {
    std::fs::metadata(path.with_extension("db-wal")).map_or(0, |file| file.len())
}

fn main() {
    let speed = std::env::args().nth(1).map_or(60, |speed| speed.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("warren.db");
    let store = SqliteStore::open(&path).unwrap();
    let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut changes, mut questions, mut largest) = (Calls::default(), Calls::default(), 0);
    let begun = Instant::now();
    let [add, forget] = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let calls = write(&store, speed, &done);
            over.store(true, Ordering::Relaxed);
            calls
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                changes
                    .time(|| store.touch_keys(&[(key(1), done.load(Ordering::Relaxed))]))
                    .unwrap();
                largest = largest.max(log_size(&path));
                thread::sleep(Duration::from_millis(5));
            }
        });
        while !over.load(Ordering::Relaxed) {
            questions.time(|| sums(&store));
            thread::sleep(Duration::from_millis(250));
        }
        writing.join().unwrap()
    });
    eprintln!("a million rows in {:?}, {} are left", begun.elapsed(), sums(&store));
    add.tell("rows are added");
    forget.tell("old rows are forgotten");
    changes.tell("a key is changed");
    questions.tell("sums of all keys are asked for");
    eprintln!("  the write-ahead log had {} KiB at most", largest / 1024);
}
