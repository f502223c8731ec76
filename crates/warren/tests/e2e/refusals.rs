//! A backend's own errors before the first byte: another provider is asked, and the client only hears
//! of the last error.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Connect, DEADLINE, Daemon, FakeWorker, Form, Gate, MockBackend, Reply, eventually};

use crate::{
    cli::{make_key, with_key},
    common::{CHAT, ask, ask_for, join, lend, post, serve},
};

fn broken(by: &str) -> Value {
    json!({"error": {"message": format!("out of memory: {by}")}})
}

/// With an alias whose targets are `big`, then `m`.
async fn aliased() -> (TempDir, Daemon, FakeWorker, FakeWorker) {
    let directory = TempDir::new().unwrap();
    let path: PathBuf = directory.path().join("warren.toml");
    std::fs::write(&path, "[models.fast]\ntargets = ['big', 'm']\n").unwrap();
    let daemon = serve().set("--config", path.to_str().unwrap()).start().await;
    let big = Connect::to(&daemon).form(Form::Binary).join("big", &["big"], 1).await;
    let small = join(&daemon, Form::Binary, "small", 1).await;
    (directory, daemon, big, small)
}

#[tokio::test]
async fn an_aliass_next_target_takes_over_from_a_backend_that_refuses() {
    let (_directory, daemon, mut big, mut small) = aliased().await;
    for status in [500, 503, 429] {
        let asked = post(&daemon.client(), CHAT, ask_for("fast", status == 503));
        let job = big.expect_job().await;
        big.complete(&job, status, &broken("big")).await;
        let job = small.expect_job().await;
        assert_eq!(job.model, "m");
        small.complete(&job, 200, &json!({"by": "small"})).await;
        let answer = asked.await.unwrap();
        assert_eq!((answer.status, answer.json()), (200, json!({"by": "small"})), "{status}");
    }
    let held = post(&daemon.client(), CHAT, ask(false));
    let at_small = small.expect_job().await;
    let asked = post(&daemon.client(), CHAT, ask_for("fast", false));
    let job = big.expect_job().await;
    big.complete(&job, 429, &broken("big")).await;
    assert_eq!(asked.await.unwrap().status, 429, "the other target is busy");
    small.complete(&at_small, 200, &json!({})).await;
    assert_eq!(held.await.unwrap().status, 200);
    daemon.is_idle().await;
}

#[tokio::test]
async fn two_workers_of_which_one_is_broken_fail_no_request() {
    let daemon = serve().start().await;
    let [bad, good] = [MockBackend::start(&["m"]).await, MockBackend::start(&["m"]).await];
    bad.answer_with(|_| Reply::json(500, &broken("bad")));
    let _bad = lend(&daemon, &bad, 4).await;
    let _good = lend(&daemon, &good, 4).await;
    let (probes, streams) = (bad.counts().started, [false, true]);
    for stream in streams.into_iter().cycle().take(12) {
        assert_eq!(daemon.client().post_json(CHAT, &ask(stream)).await.status, 200);
    }
    assert_eq!(bad.counts().started - probes, 3, "it rests after its third fault");
    let requests = daemon.admin().get("/admin/requests").await.json();
    assert!(requests.to_string().contains("\"requeues\":1"), "{requests}");
    assert!(!requests.to_string().contains("backend_error"), "{requests}");
    daemon.lines_with("its backend refused, and another is asked", 3).await;
}

/// A request that one provider refused and another answered counts as one, with the tokens of the
/// answer.
#[tokio::test]
async fn a_request_that_was_tried_twice_is_counted_once() {
    let daemon = serve().start().await;
    let limits = json!({"concurrent": 1, "rpm": 9});
    let (_, key) = make_key(&daemon, json!({"limits": limits})).await;
    let client = with_key(&daemon, &key);
    let mut first = join(&daemon, Form::Binary, "first", 1).await;
    let answer = post(&client, CHAT, ask(false));
    let job = first.expect_job().await;
    let mut second = join(&daemon, Form::Binary, "second", 1).await;
    let used = |tokens| json!({"usage": {"prompt_tokens": tokens, "completion_tokens": tokens}});
    first.complete(&job, 500, &used(900)).await;
    let again = second.expect_job().await;
    second.complete(&again, 200, &used(7)).await;
    let answer = answer.await.unwrap();
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), Some("8"));
    daemon.is_idle().await;
    let totals = async || daemon.admin().get("/admin/usage").await.json()["totals"].clone();
    eventually("the row of the ledger", DEADLINE, async || totals().await["requests"] == 1).await;
    let totals = totals().await;
    let tokens = (&totals["prompt_tokens"], &totals["completion_tokens"]);
    assert_eq!(tokens, (&json!(7), &json!(7)), "{totals}");
    let next = post(&client, CHAT, ask(false));
    let job = first.expect_job().await;
    first.complete(&job, 200, &used(1)).await;
    assert_eq!(next.await.unwrap().status, 200, "its slot is free again");
}

/// An error that never ends is not waited for.
#[tokio::test]
async fn the_rest_of_an_unwanted_error_is_stopped_at_its_backend() {
    let daemon = serve().start().await;
    let bad = MockBackend::start(&["m"]).await;
    let _bad = lend(&daemon, &bad, 1).await;
    let gate = Gate::opened();
    let endless = Reply::stream_with(500, &[], ["{\"error\":"], &gate).stalled();
    bad.then(endless);
    let mut good = Connect::to(&daemon).form(Form::Binary).join("good", &["m"], 1).await;
    let first = post(&daemon.client(), CHAT, ask(false));
    let second = post(&daemon.client(), CHAT, ask(false));
    for _ in 0..2 {
        let job = good.expect_job().await;
        good.complete(&job, 200, &json!({"by": "good"})).await;
    }
    for answer in [first, second] {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    bad.aborted(1).await;
    daemon.is_idle().await;
}
