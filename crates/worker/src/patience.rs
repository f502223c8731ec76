//! Patience with a backend that takes no requests: it restarts, or loads its model.
//!
//! A Warren server keeps such a job in its own queue, or gives it to another worker. Other servers
//! and protocols have no message for that, so the job waits here.

use std::{future::Future, time::Duration};

use backend::{Answer, BackendError};
use base::Backoff;
use bytes::BytesMut;
use http::header::CONTENT_LENGTH;
use protocol::failure::{is_loading, may_be_loading};
use tokio::time::{Instant, sleep};
use wire::dial::jitter;

/// The delays between two tries.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));

/// Asks until the backend takes the request, or until `patience` is over; then the last refusal is the answer.
/// Any other failure is returned at once.
pub(crate) async fn until_ready<F>(
    patience: Duration,
    ask: impl Fn() -> F,
) -> Result<Answer, BackendError>
where
    F: Future<Output = Result<Answer, BackendError>>,
{
    let (mut retry, give_up) = (RETRY, Instant::now() + patience);
    loop {
        let refused = match ask().await {
            Ok(answer) => match looked_at(answer).await? {
                (answer, false) => return Ok(answer),
                (answer, true) => Ok(answer),
            },
            Err(error @ BackendError::Unreachable { .. }) => Err(error),
            Err(other) => return Err(other),
        };
        let wait = retry.next(jitter());
        if Instant::now() + wait > give_up {
            return refused;
        }
        tracing::debug!(?wait, "the backend takes no requests: it is asked again");
        sleep(wait).await;
    }
}

/// The answer, and whether it says that the backend loads its model.
async fn looked_at(mut answer: Answer) -> Result<(Answer, bool), BackendError> {
    let status = answer.status.as_u16();
    let length = answer.headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    if !may_be_loading(status, length) {
        return Ok((answer, false));
    }
    let mut body = BytesMut::new();
    while let Some(bytes) = answer.body.next().await {
        body.extend_from_slice(&bytes?);
    }
    let loads = is_loading(status, &body);
    answer.body.put_back(body.freeze());
    Ok((answer, loads))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn unreachable() -> BackendError {
        BackendError::Unreachable { backend: "b".into(), reason: "refused".to_owned() }
    }

    /// Asks a backend that is away until `back`. Returns how it ends, after how many tries and when.
    async fn wait_for(back: Duration) -> (Result<(), BackendError>, u32, Duration) {
        let (start, tries) = (Instant::now(), Cell::new(0));
        let demo = backend::Backend::demo(backend::DemoConfig::default());
        let ask = || async {
            tries.set(tries.get() + 1);
            if start.elapsed() < back {
                return Err(unreachable());
            }
            demo.send(backend::BackendRequest::default()).await
        };
        let ended = until_ready(PATIENCE, ask).await.map(drop);
        (ended, tries.get(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_backend_that_restarts_is_waited_for() {
        let (ended, tries, after) = wait_for(Duration::from_secs(4)).await;
        assert!(ended.is_ok() && (3..=8).contains(&tries), "{tries}");
        assert!(after < Duration::from_secs(9), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends() {
        let (ended, _, after) = wait_for(Duration::MAX).await;
        assert_eq!(ended, Err(unreachable()));
        assert!(after <= PATIENCE && after > PATIENCE / 2, "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn other_failures_are_reported_at_once() {
        let failure = || BackendError::BadAsk("no path".to_owned());
        let start = Instant::now();
        let ended = until_ready(PATIENCE, || async { Err(failure()) }).await.map(drop);
        assert_eq!((ended, start.elapsed()), (Err(failure()), Duration::ZERO));
    }
}
