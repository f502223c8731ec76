//! Models in memory: an administrator has workers load and unload them.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Connect, DEADLINE, Daemon, FakeWorker, Form, eventually};
use tokio::process::Command;

use crate::common::{binary, join, post, serve};

/// A worker of one slot that loads models when it is told, and says this of its model `m`.
async fn engine(daemon: &Daemon, name: &str, facts: Value) -> FakeWorker {
    let mut worker = Connect::to(daemon).form(Form::Binary).open().await.unwrap();
    let register = json!({
        "type": "register", "worker_name": name, "models": ["m"], "max_concurrent": 1,
        "protocol_version": "1", "current_load": 0, "loads_models": true,
    });
    worker.register_as(&register).await;
    says(daemon, &mut worker, facts).await;
    worker
}

/// Has a worker say this of its model, and waits until the server knows it.
async fn says(daemon: &Daemon, worker: &mut FakeWorker, facts: Value) {
    let update = json!({
        "type": "models_update", "models": ["m"], "current_load": 0, "facts": {"m": facts},
    });
    worker.send(&update).await;
    let known = async || {
        let workers = daemon.workers().await;
        let own = workers.iter().find(|it| it["worker_id"] == worker.id());
        own.is_some_and(|it| it["model_facts"]["m"] == facts)
    };
    eventually("facts being listed", DEADLINE, known).await;
}

fn in_memory() -> Value {
    json!({"load": "loaded", "memory_bytes": 6_000_000_000_u64, "last_used_ms": 1_000})
}

fn on_disk(load_ms: u64) -> Value {
    json!({"load": "unloaded", "load_ms": load_ms, "file_bytes": 5_000_000_000_u64})
}

/// The path by which a worker is told to do something with its model.
fn path(worker: &FakeWorker, verb: &str) -> String {
    format!("/admin/workers/{}/models/m/{verb}", worker.id())
}

#[tokio::test]
async fn an_administrator_has_a_worker_load_and_unload_its_model() {
    let daemon = serve().start().await;
    let mut worker = engine(&daemon, "gpu", on_disk(1_000)).await;
    for (verb, message, done) in
        [("load", "load_model", "loaded"), ("unload", "unload_model", "unloaded")]
    {
        let asked = post(&daemon.admin(), path(&worker, verb), json!({}));
        let told = worker.expect_message(message).await;
        assert_eq!(told["model"], "m");
        worker.send(&json!({"type": "model_done", "number": told["number"]})).await;
        let answer = asked.await.unwrap();
        assert_eq!(answer.status, 200);
        let json = answer.json();
        assert_eq!((&json["done"], &json["worker_name"]), (&json!(done), &json!("gpu")));
    }
    let asked = post(&daemon.admin(), path(&worker, "load"), json!({}));
    let told = worker.expect_message("load_model").await;
    let error = "no memory is left: 5.0 GiB are needed";
    worker.send(&json!({"type": "model_done", "number": told["number"], "error": error})).await;
    let refused = asked.await.unwrap();
    assert_eq!(refused.status, 502);
    assert!(refused.text().contains("the worker gpu did not load m: no memory is left"));
    let audit = daemon.admin().get("/admin/audit?limit=9").await.json();
    let entries = audit["entries"].as_array().unwrap();
    let target = format!("{} m", worker.id());
    assert!(entries.iter().all(|entry| entry["target"] == target), "{audit}");
    let actions: Vec<_> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["model.load", "model.unload", "model.load"]);
    assert!(entries[0]["outcome"].as_str().unwrap().contains("no memory"), "{audit}");
}

#[tokio::test]
async fn a_load_is_refused_where_nobody_can_do_it() {
    let daemon = serve().start().await;
    let worker = engine(&daemon, "gpu", on_disk(1_000)).await;
    let stock = join(&daemon, Form::Stock, "stock", 1).await;
    let status = async |path: &str| daemon.admin().post_json(path, &json!({})).await.status;
    assert_eq!(daemon.client().post_json(&path(&worker, "load"), &json!({})).await.status, 401);
    assert_eq!(status(&path(&stock, "load")).await, 409, "a stock worker hears nothing");
    assert_eq!(status("/admin/workers/w-00000000000000ff/models/m/load").await, 404);
    let other = format!("/admin/workers/{}/models/org%2Fother/load", worker.id());
    let absent = daemon.admin().post_json(&other, &json!({})).await;
    assert_eq!(absent.status, 404);
    assert!(absent.text().contains("does not offer org/other"), "{}", absent.text());
    let asked = post(&daemon.admin(), path(&worker, "load"), json!({}));
    let mut worker = worker;
    worker.expect_message("load_model").await;
    drop(worker);
    let left = asked.await.unwrap();
    assert_eq!(left.status, 502);
    assert!(left.text().contains("it has left before it was done"), "{}", left.text());
}

/// Runs `warren model …` with a server.
async fn model(daemon: &Daemon, args: &[&str]) -> (bool, String) {
    let mut command = Command::new(binary());
    command.arg("model").args(args).args(["--server", &daemon.url()]);
    command.arg("--data-dir").arg(daemon.data_dir());
    let ended = command.stdin(Stdio::null()).env("COLUMNS", "80").output().await.unwrap();
    let texts = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
    (ended.status.success(), texts.concat())
}

#[tokio::test]
async fn the_command_lists_loads_and_unloads_models() {
    let daemon = serve().start().await;
    let mut gpu = engine(&daemon, "gpu", on_disk(3_000)).await;
    let _laptop = engine(&daemon, "laptop", on_disk(9_000)).await;
    let (well, list) = model(&daemon, &["list"]).await;
    let rows: Vec<Vec<&str>> = list.lines().map(|row| row.split_whitespace().collect()).collect();
    let row = |machine| vec!["m", machine, "unloaded", "-", "4.7", "GiB", "-", "-"];
    assert_eq!((well, &rows[1..]), (true, &[row("gpu"), row("laptop")][..]), "{list}");
    let (_, json) = model(&daemon, &["list", "--json"]).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["models"][0]["load"], "unloaded", "{json}");
    let told = async {
        let told = gpu.expect_message("load_model").await;
        gpu.send(&json!({"type": "model_done", "number": told["number"]})).await;
    };
    let ((well, text), ()) = tokio::join!(model(&daemon, &["load", "m"]), told);
    assert!(well && text.contains("m is loaded on gpu"), "the one that is quickest: {text}");
    assert!(text.contains("Loading m on gpu: about 3 s"), "{text}");
    says(&daemon, &mut gpu, in_memory()).await;
    let told = async {
        let told = gpu.expect_message("unload_model").await;
        let error = "a request uses it";
        gpu.send(&json!({"type": "model_done", "number": told["number"], "error": error})).await;
    };
    let ((well, text), ()) = tokio::join!(model(&daemon, &["unload", "m"]), told);
    assert!(!well && text.contains("a request uses it"), "{text}");
    let (well, text) = model(&daemon, &["load", "x"]).await;
    assert!(!well && text.contains("no machine has x"), "{text}");
}
