//! Walkthrough 5: workers that are lost with a request in flight.

use serde_json::json;
use testkit::{Form, MockBackend, Reply};

use crate::common::{CHAT, ask, assert_openai_error, both_forms, join, lend, post, serve};

both_forms!(another_worker_answers, a_worker_that_closes_in_order_is_lost_too);

async fn another_worker_answers(form: Form) {
    let daemon = serve().start().await;
    let mut first = join(&daemon, form, "first", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let job = first.expect_job().await;
    first.vanish();
    daemon.has_workers(0).await;
    let mut second = join(&daemon, form, "second", 1).await;
    let again = second.expect_job().await;
    assert_eq!((again.body.clone(), again.path.clone()), (job.body, job.path));
    second.complete(&again, 200, &json!({"by": "second"})).await;
    assert_eq!(answer.await.unwrap().json(), json!({"by": "second"}));
    daemon.is_idle().await;
}

async fn a_worker_that_closes_in_order_is_lost_too(form: Form) {
    let daemon = serve().set("--max-requeue-count", "0").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    worker.expect_job().await;
    worker.close().await;
    assert_openai_error(&answer.await.unwrap(), 503, "requeue attempts exhausted");
}

#[tokio::test]
async fn when_a_real_worker_is_killed_another_answers() {
    let daemon = serve().start().await;
    let dying = MockBackend::start(&["m"]).await;
    dying.answer_with(|_| Reply::hang());
    let mut first = lend(&daemon, &dying, 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    dying.request().await;
    let backend = MockBackend::start(&["m"]).await;
    let _second = lend(&daemon, &backend, 1).await;
    first.kill9().await;
    assert_eq!(answer.await.unwrap().status, 200);
    dying.aborted(1).await;
    daemon.is_idle().await;
}
