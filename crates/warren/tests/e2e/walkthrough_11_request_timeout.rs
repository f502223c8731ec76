//! Walkthrough 11: a worker has the request and does not answer in time.

use serde_json::json;
use testkit::Form;

use crate::common::{
    CHAT, MESSAGES, all_read, ask, assert_anthropic_error, assert_openai_error, both_forms,
    catch_up, join, post, serve,
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
