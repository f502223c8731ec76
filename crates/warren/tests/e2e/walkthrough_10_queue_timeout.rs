//! Walkthrough 10: no worker is free in time.

use serde_json::json;
use testkit::{Connect, Form};

use crate::common::{
    CHAT, MESSAGES, ask, ask_for, assert_anthropic_error, assert_openai_error, both_forms,
    catch_up, join, post, serve,
};

both_forms!(
    the_client_is_told_and_no_worker_is,
    a_busy_worker_is_waited_for,
    waiting_again_after_a_loss_does_not_start_anew
);

const WORDS: &str = "queue timeout: no worker available within deadline";

async fn the_client_is_told_and_no_worker_is(form: Form) {
    let daemon = serve().set("--busy-timeout-secs", "0.3").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let first = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    let words = format!(
        "{WORDS}; waited 0 s for m: the worker that serves it is busy, no request is in front"
    );
    assert_openai_error(&daemon.client().post_json(CHAT, &ask(false)).await, 504, &words);
    assert_openai_error(&daemon.client().post_json(CHAT, &ask(true)).await, 504, &words);
    let refused = daemon.client().post_json(MESSAGES, &ask(true)).await;
    assert_anthropic_error(&refused, 504, "timeout_error", &words);
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(first.await.unwrap().status, 200);
    catch_up(&daemon, &mut worker).await;
    assert!(!worker.has_unread(), "the worker heard of a request that never reached it");
    daemon.is_idle().await;
}

/// The time to wait for a worker that is missing says nothing about one that is busy. The second
/// request gets its turn long after that time: one for a model without a worker has waited it out.
async fn a_busy_worker_is_waited_for(form: Form) {
    let daemon = serve().set("--queue-timeout-secs", "0.2").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    Connect::to(&daemon).form(form).join("v", &["n"], 1).await.close().await;
    daemon.has_workers(1).await;
    let first = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    let second = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    let absent = daemon.client().post_json(CHAT, &ask_for("n", false)).await;
    assert_openai_error(&absent, 504, WORDS);
    worker.complete(&job, 200, &json!({"by": 1})).await;
    assert_eq!(first.await.unwrap().json(), json!({"by": 1}));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({"by": 2})).await;
    assert_eq!(second.await.unwrap().json(), json!({"by": 2}));
}

async fn waiting_again_after_a_loss_does_not_start_anew(form: Form) {
    let daemon = serve().set("--queue-timeout-secs", "0.5").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    worker.expect_job().await;
    worker.vanish();
    assert_openai_error(&answer.await.unwrap(), 504, WORDS);
    daemon.is_idle().await;
}
