//! Walkthrough 9: a worker's models change.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Daemon, Form, MockBackend, WorkerProcess, eventually};

use crate::common::{
    CHAT, ask, ask_for, assert_openai_error, binary, both_forms, join, post, serve,
};

both_forms!(an_update_changes_list_and_routing);

async fn models(daemon: &Daemon) -> Vec<String> {
    let list = daemon.client().get("/v1/models").await.json();
    assert_eq!(list["object"], "list");
    let id = |model: &Value| {
        assert_eq!(model["object"], "model");
        model["id"].as_str().unwrap().to_owned()
    };
    let mut ids: Vec<_> = list["data"].as_array().unwrap().iter().map(id).collect();
    ids.sort();
    ids
}

async fn lists(daemon: &Daemon, wanted: &[&str]) {
    let listed = async || models(daemon).await == wanted;
    eventually("the model list", Duration::from_secs(10), listed).await;
}

async fn an_update_changes_list_and_routing(form: Form) {
    let daemon = serve().set("--queue-timeout-secs", "0.3").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    assert_eq!(models(&daemon).await, ["m"]);
    worker.update_models(&["n", "o", "n"], 0).await;
    lists(&daemon, &["n", "o"]).await;
    let one = daemon.client().get("/v1/models/n").await.json();
    assert_eq!((&one["id"], &one["object"]), (&json!("n"), &json!("model")));
    let answer = post(&daemon.client(), CHAT, ask_for("o", false));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(answer.await.unwrap().status, 200);
    // Its only worker says that it has `m` no more, so nobody waits for it.
    let words = "no provider for model m: it was last seen at w and is gone; GET /v1/models lists those that are here";
    assert_openai_error(&daemon.client().post_json(CHAT, &ask(false)).await, 404, words);
}

/// Without `--models` a worker offers what its backend lists, and notices changes.
#[tokio::test]
async fn a_real_worker_offers_what_its_backend_lists() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["a", "b"]).await;
    let _worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "w", &[]);
    lists(&daemon, &["a", "b"]).await;
    backend.set_models(&["b", "c"]);
    let id = daemon.workers().await[0]["worker_id"].as_str().unwrap().to_owned();
    daemon.admin().post_json(&format!("/admin/workers/{id}/refresh"), &json!({})).await;
    lists(&daemon, &["b", "c"]).await;
}

/// `--models a=b` offers `a` and asks the backend for `b`.
#[tokio::test]
async fn a_real_worker_renames() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["real-name"]).await;
    let args = ["--models", "nice=real-name"];
    let _worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "w", &args);
    lists(&daemon, &["nice"]).await;
    let body = r#"{ "x":1, "model" : "nice" ,"messages":[]}"#;
    let request = daemon.client().request("POST", CHAT).header("content-type", "application/json");
    assert_eq!(request.body(body).send().await.status, 200);
    let got = backend.request().await;
    assert_eq!(got.body, r#"{ "x":1, "model" : "real-name" ,"messages":[]}"#);
}
