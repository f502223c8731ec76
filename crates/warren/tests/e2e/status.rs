//! How a server is, and what it did last: over HTTP, and on the command line.

use serde_json::{Value, json};
use testkit::{DEADLINE, Daemon, Form, RefusingPort, eventually};

use crate::{
    cli::{make_key, warren, with_key},
    common::{CHAT, ask, ask_for, join, post, serve},
};

/// The requests that ended last, as `/admin/requests` tells them.
async fn requests(daemon: &Daemon, query: &str) -> Vec<Value> {
    let answer = daemon.admin().get(&format!("/admin/requests{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["requests"].as_array().expect("a list").clone()
}

async fn has_ended(daemon: &Daemon, count: usize) {
    let ended = async || requests(daemon, "").await.len() == count;
    eventually("requests having ended", DEADLINE, ended).await;
}

#[tokio::test]
async fn the_last_requests_are_told_as_they_ended() {
    let daemon = serve().start().await;
    let (id, key) = make_key(&daemon, json!({})).await;
    let client = with_key(&daemon, &key);
    let mut worker = join(&daemon, Form::Binary, "gpu", 1).await;
    let posted = post(&client, CHAT, ask(true));
    let job = worker.expect_job().await;
    let usage = json!({"usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    worker.complete(&job, 200, &usage).await;
    let answer = posted.await.unwrap();
    assert_eq!(client.post_json(CHAT, &ask_for("nobody", false)).await.status, 404);
    // Neither a job: no valid key, no sense.
    let refused = with_key(&daemon, &format!("wk_{}", "0".repeat(64)));
    assert_eq!(refused.post_json(CHAT, &ask(false)).await.status, 401);
    assert_eq!(client.post_json(CHAT, &json!({"messages": []})).await.status, 400);
    has_ended(&daemon, 2).await;

    let told = requests(&daemon, "").await;
    let [nobody, answered] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((&nobody["outcome"], &nobody["n"]), (&json!("no_provider"), &json!(2)));
    assert_eq!((&nobody["provider"], &nobody["status"]), (&Value::Null, &Value::Null));
    assert_eq!(answered["id"], answer.header("x-request-id").unwrap());
    for (name, value) in [
        ("n", json!(1)),
        ("key", json!(id)),
        ("model", json!("m")),
        ("endpoint", json!(CHAT)),
        ("provider", json!("gpu")),
        ("outcome", json!("answered")),
        ("status", json!(200)),
        ("prompt_tokens", json!(3)),
        ("completion_tokens", json!(2)),
        ("estimated", json!(false)),
        ("streaming", json!(true)),
        ("requeues", json!(0)),
    ] {
        assert_eq!(answered[name], value, "{name}: {answered}");
    }
    assert!(answered["total_ms"].is_u64() && answered["first_byte_ms"].is_u64(), "{answered}");
    assert!(answered["at"].as_str().unwrap().ends_with('Z'), "{answered}");
    assert_eq!(answered.get("scope"), None);
    assert_eq!(requests(&daemon, "?after=1").await.len(), 1);
    assert_eq!(requests(&daemon, "?after=0&limit=1").await[0]["n"], 2);
    assert_eq!(requests(&daemon, "?after=2").await.len(), 0);
}

#[tokio::test]
async fn status_is_told_on_the_command_line() {
    let serve = serve();
    let dir = serve.data_dir().display().to_string();
    let daemon = serve.start().await;
    let mut worker = join(&daemon, Form::Stock, "gpu-box", 1).await;
    let posted = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    posted.await.unwrap();
    has_ended(&daemon, 1).await;
    let _first = post(&daemon.client(), CHAT, ask(false));
    worker.expect_job().await;
    let _second = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;

    let url = daemon.url();
    let to = ["status", "--server", &url, "--data-dir", &dir];
    let told = warren(&to).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("1 worker, 1 request in flight, 1 waiting"), "{told:?}");
    let row = |begins: &str| {
        let line = told.out.lines().find(|line| line.contains(begins));
        line.unwrap_or_else(|| panic!("no {begins}: {told:?}")).split_whitespace().collect()
    };
    let worker_row: Vec<&str> = row("ready");
    assert_eq!(worker_row[..4], ["gpu-box", "m", "ready", "1"], "{told:?}");
    let queue = told.out.lines().skip_while(|line| !line.starts_with("SCOPE")).nth(1);
    let queue: Vec<&str> = queue.unwrap().split_whitespace().take(3).collect();
    assert_eq!(queue, ["server", "m", "1"], "{told:?}");
    let request: Vec<&str> = row("answered");
    assert_eq!(request[2..6], ["local", "m", "gpu-box", "answered"], "{told:?}");
    assert!(told.out.lines().all(|line| line.chars().count() <= 80), "{told:?}");

    let json = warren(&[&to[..], &["--json", "--last", "0"]].concat()).await.json();
    assert_eq!(json["health"]["workers"][0]["worker_name"], "gpu-box");
    assert_eq!(json["stats"]["queues"][0]["depth"], 1);
    assert_eq!(json["requests"], json!([]));
}

#[tokio::test]
async fn a_status_that_cannot_be_had_says_why() {
    let refusing = RefusingPort::take();
    let url = refusing.url();
    let nobody = warren(&["status", "--server", &url, "--admin-token", "t"]).await;
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    let daemon = serve().start().await;
    let url = daemon.url();
    let wrong = warren(&["status", "--server", &url, "--admin-token", "wrong"]).await;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("administrator's token"), "{wrong:?}");
    let help = warren(&["status", "--help"]).await;
    assert!(help.code == Some(0) && help.out.contains("--last <N>"), "{help:?}");
}
