//! The last minutes of a server as a series of points, and the requests that have not ended.

use std::time::Duration;

use protocol::admin::requests::MOST_RUNNING;
use serde_json::{Value, json};
use testkit::{DEADLINE, Daemon, Form, eventually};

use crate::{
    cli::{make_key, with_key},
    common::{CHAT, ask, ask_for, join, post, serve},
};

const EVENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";

async fn asked(daemon: &Daemon, path: &str) -> Value {
    let answer = daemon.admin().get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn points(daemon: &Daemon, query: &str) -> Vec<Value> {
    let series = asked(daemon, &format!("/admin/series{query}")).await;
    assert_eq!(series["step_secs"], 2);
    series["points"].as_array().expect("a list").clone()
}

async fn running(daemon: &Daemon) -> Vec<Value> {
    let list = asked(daemon, "/admin/requests/running").await;
    list["requests"].as_array().expect("a list").clone()
}

/// The sum of a count over all points.
fn sum(points: &[Value], name: &str) -> u64 {
    points.iter().filter_map(|point| point[name].as_u64()).sum()
}

#[tokio::test]
async fn a_request_is_told_while_it_waits_and_runs_and_counts_in_its_step() {
    let daemon = serve().start().await;
    let (id, key) = make_key(&daemon, json!({})).await;
    let mut worker = join(&daemon, Form::Binary, "gpu", 1).await;
    let first = with_key(&daemon, &key).post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    let waiting = post(&daemon.client(), CHAT, ask(false));
    let both = async || running(&daemon).await.len() == 2;
    eventually("both requests being told", DEADLINE, both).await;
    // The time to the first text is longer than that to the head.
    worker.chunk(&job, ": it begins\n\n").await;
    let mut answer = first.answer().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    worker.chunk(&job, EVENT).await;
    answer.expect(&format!(": it begins\n\n{EVENT}")).await;

    let told = running(&daemon).await;
    let [runs, waits] = told.as_slice() else { panic!("{told:?}") };
    for (name, of_first, of_second) in [
        ("state", json!("running"), json!("queued")),
        ("key", json!(id), Value::Null),
        ("worker", json!("gpu"), Value::Null),
        ("model", json!("m"), json!("m")),
        ("endpoint", json!(CHAT), json!(CHAT)),
        ("tokens", json!(1), Value::Null),
    ] {
        assert_eq!((&runs[name], &waits[name]), (&of_first, &of_second), "{name}: {told:?}");
    }
    assert!(runs["running_ms"].as_u64() >= Some(300), "{runs}");
    assert_eq!(waits["running_ms"], 0);

    worker.finish(&job).await;
    let job = worker.expect_job().await;
    worker.complete(&job, 500, &json!({})).await;
    waiting.await.unwrap();
    assert_eq!(daemon.client().post_json(CHAT, &ask_for("nobody", false)).await.status, 404);
    let all = async || sum(&points(&daemon, "").await, "requests") == 3;
    eventually("all requests being in the series", DEADLINE, all).await;
    assert!(running(&daemon).await.is_empty());

    let points = points(&daemon, "?since=900").await;
    assert_eq!((sum(&points, "errors"), sum(&points, "tokens")), (2, 1), "{points:?}");
    let first_token = points.iter().filter_map(|point| point["first_token_ms"].as_u64()).max();
    assert!(first_token >= Some(300), "{points:?}");
    let last = asked(&daemon, "/admin/requests").await;
    let streamed = last["requests"].as_array().unwrap().iter().find(|it| it["streaming"] == true);
    assert_eq!(streamed.unwrap()["first_token_ms"].as_u64(), first_token);
    assert!(streamed.unwrap()["first_byte_ms"].as_u64() < first_token, "{last}");
}

#[tokio::test]
async fn at_most_the_oldest_500_requests_are_told() {
    let daemon = serve().set("--max-queue-len", "1200").start().await;
    let mut worker = join(&daemon, Form::Binary, "gpu", 1).await;
    let oldest = daemon.client().post(CHAT, &ask(false)).open().await;
    let oldest = (worker.expect_job().await, oldest);
    let mut others = Vec::new();
    for _ in 0..MOST_RUNNING {
        others.push(daemon.client().post(CHAT, &ask(false)).open().await);
    }
    let all = async || {
        let stats = asked(&daemon, "/admin/stats").await;
        stats["queue_depth"]["server"].as_u64() == Some(MOST_RUNNING as u64)
    };
    eventually("all requests waiting", DEADLINE, all).await;
    let told = running(&daemon).await;
    assert_eq!(told.len(), MOST_RUNNING);
    let waits: Vec<bool> = told.iter().map(|request| request["state"] == "queued").collect();
    assert!(!waits[0] && waits[1..].iter().all(|waits| *waits), "the newest is left out");
    drop((oldest, others));
}

#[tokio::test]
async fn the_series_is_the_operators_and_tells_what_waits() {
    let daemon = serve().start().await;
    for path in ["/admin/series", "/admin/requests/running"] {
        assert_eq!(daemon.client().get(path).await.status, 401, "{path}");
    }
    let bad = daemon.admin().get("/admin/series?since=7d").await;
    assert!(bad.status == 400 && bad.text().contains("since=SECONDS"), "{}", bad.text());
    let mut worker = join(&daemon, Form::Binary, "gpu", 1).await;
    let _first = post(&daemon.client(), CHAT, ask(false));
    worker.expect_job().await;
    let _second = post(&daemon.client(), CHAT, ask(false));
    let told = async || {
        let last = points(&daemon, "?since=2").await;
        last.first().is_some_and(|point| point["queued"] == 1 && point["in_flight"] == 1)
    };
    eventually("the series telling what waits", DEADLINE, told).await;
    let last = points(&daemon, "?since=2").await;
    assert_eq!((last.len(), &last[0]["first_byte_ms"]), (1, &Value::Null));
}
