//! Clients that hang up in the middle of a stream, one after another, and how long it takes until
//! the backend sees it. Both ends note the time by the clock of the machine.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::Failures;
use crate::{
    backend::{self, fetch},
    http1::Link,
    payload::{Answer, BenchRequest, Events},
    stats::Times,
};

const READ: u32 = 2;

/// How long the stream is silent afterwards: a server that notices a lost client only by writing to it
/// notices too late.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a stream may take to bring its first chunks.
const LIMIT: Duration = Duration::from_secs(20);

/// How long after the last client the backend's aborts are waited for.
const LATEST: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cancel {
    pub(crate) addr: SocketAddr,
    pub(crate) backend: SocketAddr,
    pub(crate) count: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Time from hanging up to the abort at the backend.
    pub(crate) latency: Times,
    pub(crate) seen: u64,
    /// Streams that did not begin, and aborts never seen.
    pub(crate) failures: Failures,
}

/// Lets all clients hang up, and asks the backend for the aborts.
pub(crate) async fn run(plan: &Cancel) -> Result<Outcome> {
    // Numbers of this run only: the backend remembers those of earlier ones.
    let first = backend::now();
    let (mut failures, mut left) = (Failures::default(), BTreeMap::new());
    for id in (first..).take(plan.count as usize) {
        match timeout(LIMIT, hang_up(plan.addr, id)).await {
            Ok(Ok(when)) => drop(left.insert(id, when)),
            Ok(Err(e)) => failures.add(&format!("{e:#}")),
            Err(_) => failures.add("time-out"),
        }
        sleep(PAUSE).await;
    }
    let seen = fetch(plan.backend, first, left.len(), LATEST).await?;
    Ok(compare(&left, &seen, failures))
}

/// Reads the first chunks of a stream and closes the connection; returns when.
async fn hang_up(addr: SocketAddr, id: u64) -> Result<u64> {
    let silence = u64::try_from(SILENCE.as_millis())?;
    let answer = Answer::Stream { chunks: u32::MAX, burst: READ, gap_ms: silence };
    let mut link = Link::open(addr).await?;
    let response = link.chat(BenchRequest { id, answer }.body(1024)).await?;
    ensure!(response.status() == 200, "status {}", response.status().as_u16());
    let (mut body, mut events) = (response.into_body(), Events::default());
    while events.count < u64::from(READ) {
        let frame = body.frame().await.context("ended before its first chunks")??;
        events.feed(frame.data_ref().map_or(&[], |data| data));
    }
    let when = backend::now();
    drop(link);
    Ok(when)
}

fn compare(left: &BTreeMap<u64, u64>, seen: &BTreeMap<u64, u64>, failures: Failures) -> Outcome {
    let mut outcome = Outcome { failures, ..Outcome::default() };
    for (id, when) in left {
        match seen.get(id) {
            Some(end) => {
                outcome.latency.add(Duration::from_nanos(end.saturating_sub(*when)));
                outcome.seen += 1;
            }
            None => outcome.failures.add("the backend saw no abort"),
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_backend_sees_every_client_leave() {
        let addr = crate::backend::start().await;
        let outcome = run(&Cancel { addr, backend: addr, count: 20 }).await.unwrap();
        assert_eq!((outcome.seen, outcome.failures.total()), (20, 0));
        assert!(outcome.latency.millis(0.5).is_some());
    }

    #[test]
    fn an_abort_nobody_saw_is_a_failure() {
        let left = BTreeMap::from([(1, 1_000), (2, 2_000)]);
        let outcome = compare(&left, &BTreeMap::from([(2, 9_000)]), Failures::default());
        assert_eq!((outcome.seen, outcome.failures.total()), (1, 1));
    }
}
