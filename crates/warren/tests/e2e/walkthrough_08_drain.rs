//! Walkthrough 8: a worker is drained.

use serde_json::json;
use testkit::{Daemon, FakeWorker, Form, Gate, Reply};

use crate::common::{CHAT, ask, both_forms, join, post, serve, with_lender};

both_forms!(jobs_in_flight_finish_then_the_link_closes);

async fn drain(daemon: &Daemon, id: &str) {
    let path = format!("/admin/workers/{id}/drain");
    let answer = daemon.admin().post_json(&path, &json!({})).await;
    assert!((200..300).contains(&answer.status), "{}", answer.text());
}

async fn expect_shutdown(worker: &mut FakeWorker) {
    let told = worker.expect_message("graceful_shutdown").await;
    assert!(told["drain_timeout_secs"].as_u64().is_some_and(|secs| secs >= 1), "{told}");
    assert!(told["reason"].is_string(), "{told}");
}

async fn jobs_in_flight_finish_then_the_link_closes(form: Form) {
    let daemon = serve().start().await;
    let mut draining = join(&daemon, form, "draining", 2).await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = draining.expect_job().await;
    draining.chunk(&job, "data: 1\n\n").await;
    let mut answer = asked.answer().await;
    answer.expect("data: 1\n\n").await;
    drain(&daemon, draining.id()).await;
    expect_shutdown(&mut draining).await;
    assert_eq!(daemon.workers().await[0]["is_draining"], true);
    // It has a free slot, and yet the next request waits for another worker.
    let next = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    let mut other = join(&daemon, form, "other", 1).await;
    let moved = other.expect_job().await;
    other.complete(&moved, 200, &json!({"by": "other"})).await;
    assert_eq!(next.await.unwrap().json(), json!({"by": "other"}));
    draining.chunk(&job, "data: 2\n\n").await;
    answer.expect("data: 2\n\n").await;
    draining.finish(&job).await;
    assert_eq!(answer.next_chunk().await, None);
    let (code, _) = draining.expect_close().await.expect("a close frame");
    assert_eq!(code, 1000);
    assert!(!draining.has_unread());
    daemon.has_workers(1).await;
}

#[tokio::test]
async fn a_real_worker_finishes_and_comes_back() {
    let (daemon, backend, _worker) = with_lender(2).await;
    let gate = Gate::closed();
    backend.then(Reply::completion("late").after(&gate));
    let answer = post(&daemon.client(), CHAT, ask(false));
    backend.request().await;
    let drained = daemon.workers().await[0]["worker_id"].clone();
    drain(&daemon, drained.as_str().unwrap()).await;
    gate.open(1);
    let answer = answer.await.unwrap().json();
    assert_eq!(answer["choices"][0]["message"]["content"], "late");
    // It is not told to stay away: it reconnects, as a new worker, and takes what waits.
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    assert_ne!(daemon.workers().await[0]["worker_id"], drained);
}
