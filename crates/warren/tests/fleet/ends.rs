//! Requests that do not end as they should: who leaves, fails, is slow or is too late.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use testkit::{Connect, DEADLINE, Daemon, FakeWorker, Form, Job, Response, eventually};

use crate::servers::{
    CHAT, EVENTS, ask, asked, begun, completion, delta, has_workers, is_idle, own_group, sees,
    serve, two, worker,
};

/// A worker's first credit for an answer, in bytes.
const FIRST_CREDIT: u64 = 256 * 1024;

#[tokio::test]
async fn a_client_that_leaves_stops_the_worker_of_the_other_server() {
    let (one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 2, &[&other]).await;
    let waiting = other.client().post(CHAT, &ask(true)).open().await;
    let unbegun = lent.expect_job().await;
    waiting.reset();
    assert_eq!(lent.expect_cancel().await.0, unbegun.request_id);
    let (answer, begun) = begun(&other, &mut lent).await;
    answer.reset();
    assert_eq!(lent.expect_cancel().await.0, begun.request_id);
    for server in [&one, &other] {
        is_idle(server).await;
    }
}

#[tokio::test]
async fn a_worker_that_takes_too_long_is_stopped_by_the_home_of_the_request() {
    let nats = own_group();
    let one = serve(&nats, "one").start().await;
    let other = serve(&nats, "other").set("--request-timeout-secs", "1").start().await;
    sees(&other, 1).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    let answer = asked(&other, false);
    let job = lent.expect_job().await;
    assert_eq!(lent.expect_cancel().await.0, job.request_id);
    assert_eq!(answer.await.unwrap().finish().await.status, 504);
}

#[tokio::test]
async fn a_request_that_has_not_begun_goes_to_another_worker_when_its_own_is_lost() {
    let (one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    let answer = asked(&other, false);
    lent.expect_job().await;
    let mut own = Connect::to(&other).form(Form::Binary).join("own", &["m"], 1).await;
    lent.vanish();
    let job = own.expect_job().await;
    own.complete(&job, 200, &completion("from home")).await;
    let answer = answer.await.unwrap().finish().await;
    assert!(answer.status == 200 && answer.text().contains("from home"), "{}", answer.text());
}

/// A client's answer at a server from a worker that fails in this way.
async fn failed(at: &Daemon, lent: &mut FakeWorker, fails: &str) -> (u16, Value) {
    let answer = asked(at, false);
    let job = lent.expect_job().await;
    lent.fail(&job, fails, "its words").await;
    let answer: Response = answer.await.unwrap().finish().await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn a_failure_looks_at_the_other_server_as_it_does_at_home() {
    let nats = own_group();
    let start = async |name| serve(&nats, name).set("--max-requeue-count", "0").start().await;
    let (one, other) = (start("one").await, start("other").await);
    sees(&other, 1).await;
    let mut lent = worker(&one, 2, &[&other]).await;
    for code in ["backend_error", "internal_error"] {
        let here = failed(&one, &mut lent, code).await;
        assert!(here.0 >= 500 && here.1.to_string().contains("its words"), "{here:?}");
        assert_eq!(failed(&other, &mut lent, code).await, here, "{code}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_ends_with_the_error_of_its_api() {
    let (one, other) = two(&own_group()).await;
    for vanishes in [false, true] {
        let mut lent = worker(&one, 1, &[&other]).await;
        let answer = asked(&other, true);
        let job = lent.expect_job().await;
        lent.begin(&job, 200, EVENTS).await;
        lent.chunk(&job, &delta("a")).await;
        let mut answer = answer.await.unwrap();
        answer.expect(&delta("a")).await;
        match vanishes {
            true => lent.vanish(),
            false => {
                lent.fail(&job, "backend_error", "it broke").await;
                lent.close().await;
            }
        }
        let rest = answer.finish().await.text();
        assert!(rest.starts_with("data: {\"error\":"), "{rest}");
        has_workers(&other, 0).await;
    }
}

/// Sends an answer of `chunks` chunks of 16 KiB, as fast as credit allows. Counts them.
async fn pour(lent: &mut FakeWorker, job: &Job, chunks: usize, sent: &AtomicUsize) {
    let chunk = "x".repeat(16 * 1024);
    for number in 1..=chunks {
        let needed = (number * chunk.len()) as u64;
        if let Some(beyond) = needed.checked_sub(FIRST_CREDIT).filter(|beyond| *beyond > 0) {
            lent.expect_credit(job, beyond).await;
        }
        lent.chunk(job, &chunk).await;
        sent.store(number, Ordering::Relaxed);
    }
    lent.finish(job).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_its_own_answer_and_no_other() {
    const CHUNKS: usize = 4_096;
    let (one, other) = two(&own_group()).await;
    let mut slow = worker(&one, 1, &[&other]).await;
    let stuck = asked(&other, true);
    let job = slow.expect_job().await;
    slow.begin(&job, 200, EVENTS).await;
    let sent = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&sent);
    let pouring = tokio::spawn(async move {
        pour(&mut slow, &job, CHUNKS, &counted).await;
    });
    let stuck = stuck.await.unwrap();
    let begun = async || sent.load(Ordering::Relaxed) > 16;
    eventually("the first chunks", DEADLINE, begun).await;
    let mut quick = Connect::to(&one).form(Form::Binary).join("quick", &["m"], 1).await;
    has_workers(&other, 2).await;
    for _ in 0..20 {
        let answer = asked(&other, false);
        let job = quick.expect_job().await;
        quick.complete(&job, 200, &completion("x")).await;
        assert_eq!(answer.await.unwrap().finish().await.status, 200);
    }
    let so_far = sent.load(Ordering::Relaxed);
    assert!(so_far < CHUNKS, "an answer of 64 MiB went into buffers");
    let body = stuck.finish().await.text();
    let end = body.get(body.len() - 200..).unwrap_or_default();
    assert_eq!(body.len(), CHUNKS * 16 * 1024, "{end}\n{}\n{}", one.log(), other.log());
    pouring.await.unwrap();
}
