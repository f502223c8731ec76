//! The usage of a request is counted where its client is, and nowhere else.

use serde_json::json;
use testkit::{DEADLINE, Daemon, eventually};

use crate::servers::{
    CHAT, ask, asked, completion, delta, own_group, owner, sees, serve, two, worker,
};

/// Requests, tokens of prompts and of answers in a server's ledger.
async fn totals(daemon: &Daemon) -> [u64; 3] {
    let told = owner(daemon).get("/admin/usage").await.json();
    ["requests", "prompt_tokens", "completion_tokens"]
        .map(|name| told["totals"][name].as_u64().unwrap_or_default())
}

#[tokio::test]
async fn a_request_is_in_the_ledger_of_its_home_once_and_with_its_tokens() {
    let (one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    for number in 1..=3 {
        let answer = asked(&other, false);
        let job = lent.expect_job().await;
        lent.complete(&job, 200, &completion("x")).await;
        assert_eq!(answer.await.unwrap().finish().await.status, 200);
        let counted = async || totals(&other).await == [number, 3 * number, 4 * number];
        eventually("the row at home", DEADLINE, counted).await;
    }
    assert_eq!(totals(&one).await, [0, 0, 0]);
    let metrics = one.metrics().await;
    assert!(!metrics.contains("warren_requests_total{"), "{metrics}");
    assert!(metrics.contains("warren_fleet_jobs_total{way=\"served\"} 3"), "{metrics}");
    let metrics = other.metrics().await;
    assert!(
        metrics.contains("warren_requests_total{model=\"m\",outcome=\"answered\"} 3"),
        "{metrics}"
    );
    for line in [
        "warren_fleet_jobs_total{way=\"sent\"} 3",
        "warren_fleet_servers 2",
        "warren_fleet_connected 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    assert_eq!(owner(&one).get("/admin/requests").await.json()["requests"], json!([]));
}

#[tokio::test]
async fn a_key_that_is_revoked_at_home_ends_its_answer_at_the_worker() {
    let nats = own_group();
    let one = serve(&nats, "one").start().await;
    let other = serve(&nats, "other").flag("--require-key").start().await;
    sees(&other, 1).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    let made = owner(&other).post_json("/admin/keys", &json!({"name": "n"})).await.json();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let asked = other.client().with_token(key).post(CHAT, &ask(true)).open().await;
    let job = lent.expect_job().await;
    lent.begin(&job, 200, &[("content-type", "text/event-stream")]).await;
    lent.chunk(&job, &delta("a")).await;
    let mut answer = asked.answer().await;
    answer.expect(&delta("a")).await;
    let revoked = owner(&other).request("DELETE", &format!("/admin/keys/{id}")).send().await;
    assert_eq!(revoked.status, 200);
    assert_eq!(lent.expect_cancel().await.0, job.request_id);
    assert!(answer.finish().await.text().contains("the API key was revoked"));
}
