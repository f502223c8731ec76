//! Deadlines, and conditions that come true.

use std::{
    panic::Location,
    time::{Duration, Instant},
};

use tokio::time::{sleep, timeout};

/// How long a test waits for anything before it fails: far longer than anything takes, so that a
/// busy machine does not fail it.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// How often a condition that sends no event is looked at.
const POLL: Duration = Duration::from_millis(5);

/// Waits for a future, or fails the test after [`DEADLINE`], naming what did not happen.
#[track_caller]
pub fn within<F: Future>(what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        match timeout(DEADLINE, future).await {
            Ok(output) => output,
            Err(_) => panic!("at {caller}: {what} did not happen within {DEADLINE:?}"),
        }
    }
}

/// Looks at a condition again and again until it holds, or fails the test after `deadline`.
#[track_caller]
pub fn eventually<C, F>(what: &str, deadline: Duration, condition: C) -> impl Future<Output = ()>
where
    C: Fn() -> F,
    F: Future<Output = bool>,
{
    let caller = Location::caller();
    async move {
        let end = Instant::now() + deadline;
        while !condition().await {
            assert!(Instant::now() < end, "at {caller}: {what} did not come true in {deadline:?}");
            sleep(POLL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_condition_is_looked_at_until_it_holds() {
        let looks = Cell::new(0);
        let third = async || {
            looks.set(looks.get() + 1);
            looks.get() == 3
        };
        eventually("the third look", DEADLINE, third).await;
        assert_eq!(looks.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "nothing did not happen within")]
    async fn a_wait_ends_at_its_deadline() {
        within("nothing", std::future::pending::<()>()).await;
    }
}
