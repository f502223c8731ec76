//! Walkthrough 10: no worker is free in time.

use serde_json::json;
use testkit::Form;

use crate::common::{
    CHAT, MESSAGES, ask, assert_anthropic_error, assert_openai_error, both_forms, catch_up, join,
    post, serve,
};

both_forms!(the_client_is_told_and_no_worker_is);

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
