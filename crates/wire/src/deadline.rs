//! Waiting for a time that may be absent.

use std::future::pending;

use tokio::time::{Instant, sleep_until};

/// Waits until this time, or for ever if there is none. Cancel safe.
pub async fn until(at: Option<impl Into<Instant>>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_time_is_waited_for_and_without_one_the_wait_never_ends() {
        let start = Instant::now();
        let soon = start + Duration::from_secs(7);
        until(Some(soon)).await;
        assert_eq!(Instant::now(), soon);
        until(Some(start.into_std())).await;
        assert_eq!(Instant::now(), soon, "a time that has passed is not waited for");
        assert!(timeout(Duration::from_secs(3600), until(None::<Instant>)).await.is_err());
    }
}
