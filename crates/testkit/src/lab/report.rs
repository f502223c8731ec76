//! The deeds of a soak, its faults, and the conditions that hold in the end.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::Outcome;

/// How many wrong things are printed one by one.
const MAX_PRINTED: usize = 20;

/// The pause between two looks at a condition.
const LOOK: Duration = Duration::from_millis(100);

/// Where all tasks of a soak report: a tally of its own type, and what was wrong.
#[derive(Debug)]
pub struct Report<T>(Arc<Mutex<Inner<T>>>);

#[derive(Debug, Default)]
struct Inner<T> {
    tally: T,
    wrongs: u64,
    wrong: Vec<String>,
}

impl<T> Clone for Report<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Default> Default for Report<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Report<T> {
    fn with<R>(&self, change: impl FnOnce(&mut Inner<T>) -> R) -> R {
        change(&mut self.0.lock().expect("nobody panics with it"))
    }

    /// Reports something that is wrong.
    pub fn wrong(&self, what: impl Into<String>) {
        let what = what.into();
        self.with(|inner| {
            inner.wrongs += 1;
            if inner.wrong.len() < MAX_PRINTED {
                inner.wrong.push(what);
            }
        });
    }

    pub fn wrongs(&self) -> u64 {
        self.with(|inner| inner.wrongs)
    }

    /// Reads or changes the tally.
    pub fn tally<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.with(|inner| change(&mut inner.tally))
    }

    /// Reads or changes the tally, and reports what that finds wrong.
    pub fn check(&self, change: impl FnOnce(&mut T) -> Option<String>) {
        if let Some(wrong) = self.tally(change) {
            self.wrong(wrong);
        }
    }

    pub fn outcome(&self, account: String) -> Outcome {
        Outcome { account, wrong: self.with(|inner| inner.wrong.clone()) }
    }
}

/// Looks until nothing is wrong. What is still wrong after that time is reported.
pub async fn settles<T>(
    report: &Report<T>,
    what: &str,
    within: Duration,
    look: impl AsyncFn() -> Option<String>,
) {
    let until = Instant::now() + within;
    while let Some(wrong) = look().await {
        if Instant::now() > until {
            return report.wrong(format!("{what}: {wrong}"));
        }
        sleep(LOOK).await;
    }
}

/// The samples in a text of metrics whose line `is_meant` and whose value is not 0.
pub fn not_zero(metrics: &str, is_meant: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    samples.filter(move |line| is_meant(line) && !line.ends_with(" 0") && !line.ends_with(" 0.0"))
}
