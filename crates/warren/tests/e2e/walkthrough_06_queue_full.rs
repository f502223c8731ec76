//! Walkthrough 6: the queue is full.

use serde_json::json;
use testkit::{Form, Response};

use crate::common::{
    CHAT, MESSAGES, ask, assert_anthropic_error, assert_openai_error, both_forms, join, post, serve,
};

both_forms!(a_key_fills_half_of_a_queue);

async fn a_key_fills_half_of_a_queue(form: Form) {
    let daemon = serve().set("--max-queue-len", "2").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let first = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    let waiting = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    let refused = daemon.client().post_json(CHAT, &ask(false)).await;
    assert_openai_error(&refused, 429, "queue full");
    assert_retry_after(&refused);
    let refused = daemon.client().post_json(MESSAGES, &ask(false)).await;
    assert_anthropic_error(&refused, 429, "rate_limit_error", "queue full");
    assert_retry_after(&refused);
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(first.await.unwrap().status, 200);
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(waiting.await.unwrap().status, 200);
    daemon.is_idle().await;
}

#[track_caller]
fn assert_retry_after(response: &Response) {
    let seconds: u64 = response.header("retry-after").expect("a Retry-After").parse().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds}");
}
