//! Conditions that hold in the end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Report;

const LOOK: Duration = Duration::from_millis(100);

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
