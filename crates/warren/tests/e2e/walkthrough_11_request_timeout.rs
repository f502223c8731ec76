//! Walkthrough 11: a worker has the request and does not answer in time.

use serde_json::json;
use testkit::{Form, Gate, MockBackend, Reply};

use crate::common::{
    CHAT, MESSAGES, all_read, ask, assert_anthropic_error, assert_openai_error, both_forms,
    catch_up, join, lend, post, serve,
};

both_forms!(worker_and_client_are_told);

async fn worker_and_client_are_told(form: Form) {
    let daemon = serve().set("--request-timeout-secs", "0.3").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    assert_eq!(worker.expect_cancel().await, (job.request_id.clone(), json!("timeout")));
    assert_openai_error(&answer.await.unwrap(), 504, "request timeout");
    daemon.is_idle().await;
    // A late answer reaches nobody, and the slot is free.
    worker.complete(&job, 200, &json!({"late": 1})).await;
    all_read(&daemon, &mut worker).await;
    catch_up(&daemon, &mut worker).await;
    let answer = post(&daemon.client(), MESSAGES, ask(true));
    let job = worker.expect_job().await;
    assert_eq!(worker.expect_cancel().await, (job.request_id, json!("timeout")));
    assert_anthropic_error(&answer.await.unwrap(), 504, "timeout_error", "request timeout");
}

#[tokio::test]
async fn a_real_worker_aborts_a_backend_that_hangs() {
    let daemon = serve().set("--request-timeout-secs", "0.3").start().await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&daemon, &backend, 1).await;
    for stream in [false, true] {
        backend.then(Reply::completion("late").after(&Gate::closed()));
        let answer = daemon.client().post_json(CHAT, &ask(stream)).await;
        assert_openai_error(&answer, 504, "request timeout");
        backend.aborted(1 + u64::from(stream)).await;
    }
    daemon.is_idle().await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
}
