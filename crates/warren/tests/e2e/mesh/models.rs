//! Models that are passed on: between Warrens, and with stock peers in both roles.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use testkit::{
    ChildProcess, DEADLINE, Serve, Way,
    daemon::WORKER_SECRET,
    eventually,
    gguf::GgufFile,
    processes::{FAKE_ENGINE, example},
};

use super::kit::{Machine, listening};
use crate::common::{binary, serve};

const MODEL: &str = "org/tiny";
const MIB: usize = 1024 * 1024;

/// Bytes that no two pieces have in common.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn files() -> BTreeMap<String, Vec<u8>> {
    BTreeMap::from([
        ("model.gguf".to_owned(), bytes(1, 12 * MIB + 12_345)),
        ("config.json".to_owned(), br#"{"a":1}"#.to_vec()),
        ("tail.bin".to_owned(), bytes(2, MIB)),
    ])
}

/// Settings of a machine that passes on the model.
fn holding(folder: &Path) -> Serve {
    let directory = folder.join("org").join("tiny");
    std::fs::create_dir_all(&directory).unwrap();
    for (name, bytes) in files() {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
    listening().set("--mesh-models", folder.to_str().unwrap())
}

fn arrived(machine: &Machine) -> PathBuf {
    machine.daemon.data_dir().join("models").join("org").join("tiny")
}

/// Whether all files are there, to the bit.
#[track_caller]
fn is_there(machine: &Machine) {
    for (name, bytes) in files() {
        let path = arrived(machine).join(&name);
        let found = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(found == bytes, "{name} is not what was sent");
    }
}

/// Pulls the model, and returns the steps.
async fn pull(machine: &Machine, model: &str) -> Vec<Value> {
    let asked =
        machine.daemon.admin().post_json("/admin/mesh/pull", &json!({"model": model})).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    asked.text().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

async fn linked(machine: &Machine, count: usize) {
    let linked = async || {
        let peers = machine.peers().await;
        peers.iter().filter(|peer| peer["link"] == "lan").count() == count
    };
    eventually("the links", DEADLINE, linked).await;
}

#[track_caller]
fn last_of(steps: &[Value], state: &str) -> Value {
    let last = steps.last().expect("a step").clone();
    assert_eq!(last["state"], state, "{last}");
    last
}

#[tokio::test]
async fn a_model_comes_from_two_peers_bit_by_bit_and_can_be_passed_on() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let one = Machine::start(holding(folders[0].path())).await;
    let two = Machine::start(holding(folders[1].path())).await;
    let settings = listening().set("--mesh-peer", &one.lan().await);
    let receiver = Machine::start(settings.set("--mesh-peer", &two.lan().await)).await;
    linked(&receiver, 2).await;
    let listed = receiver.cli(&["models", "--json"]).await.json();
    let of_model = |models: &Value| {
        let all = models["models"].as_array().unwrap().clone();
        all.into_iter().find(|model| model["id"] == MODEL).expect("the model is listed")
    };
    let model = of_model(&listed);
    assert_eq!(model["offered_by"].as_array().map(Vec::len), Some(2), "{model}");
    let total: usize = files().values().map(Vec::len).sum();
    assert_eq!((&model["bytes"], &model["files_here"]), (&json!(total), &json!(false)));

    let last = last_of(&pull(&receiver, MODEL).await, "done");
    assert_eq!((&last["bytes"], &last["total"]), (&json!(total), &json!(total)));
    is_there(&receiver);
    let sent = async |machine: &Machine| {
        let all = machine.daemon.admin().get("/admin/mesh/transfers").await.json();
        let out = all["transfers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["direction"] == "out")
            .cloned();
        out.and_then(|it| it["bytes"].as_u64()).unwrap_or(0)
    };
    assert!(sent(&one).await > 0 && sent(&two).await > 0, "both have sent something");
    // What is there need not come again.
    assert_eq!(last_of(&pull(&receiver, MODEL).await, "done")["peers"], json!([]));

    let third = Machine::start(serve().set("--mesh-peer", &receiver.lan().await)).await;
    linked(&third, 1).await;
    last_of(&pull(&third, MODEL).await, "done");
    is_there(&third);
}

#[tokio::test]
async fn a_pull_goes_on_where_it_was_when_the_server_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let holder = Machine::start(holding(folder.path())).await;
    let wire = Way::to(holder.lan_address().await).await;
    let mut receiver =
        Machine::start(serve().set("--mesh-peer", &wire.address().to_string())).await;
    linked(&receiver, 1).await;
    wire.freeze_after(9 * MIB as u64);
    let body = json!({"model": MODEL});
    let pulling = receiver.daemon.admin().post("/admin/mesh/pull", &body).start().await;
    wire.is_frozen().await;
    let some = async || {
        let all = receiver.daemon.admin().get("/admin/mesh/transfers").await.json();
        all["transfers"][0]["bytes"].as_u64().is_some_and(|bytes| bytes > 4 * MIB as u64)
    };
    eventually("some of the model", DEADLINE, some).await;
    drop(pulling);
    wire.cut();
    receiver.daemon.kill_and_restart().await;
    let before = wire.passed();
    wire.mend();
    linked(&receiver, 1).await;
    last_of(&pull(&receiver, MODEL).await, "done");
    is_there(&receiver);
    let again = wire.passed() - before;
    assert!(again < 11 * MIB as u64, "{again} bytes came after the kill");
}

/// The server that has fetched the model runs no model engines, so the command lends it.
#[tokio::test]
async fn a_pulled_model_is_lent_on() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("org/rabbit/rabbit.gguf");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, GgufFile::model().bytes(0)).unwrap();
    let giver =
        Machine::start(listening().set("--mesh-models", place.path().to_str().unwrap())).await;
    let receiver = Machine::start(serve().set("--mesh-peer", &giver.lan().await)).await;
    linked(&receiver, 1).await;
    let engine = place.path().join("llama-server");
    std::os::unix::fs::symlink(example(FAKE_ENGINE, "testkit"), &engine).unwrap();
    let settings = format!(
        "[worker]\nsecret = '{WORKER_SECRET}'\n[[worker.engines]]\ncommand = '{}'\n",
        engine.display()
    );
    let config = place.path().join("warren.toml");
    std::fs::write(&config, settings).unwrap();
    let (config, data) =
        (config.display().to_string(), receiver.daemon.data_dir().display().to_string());
    let url = receiver.daemon.url();
    let args = ["mesh", "pull", "org/rabbit", "--serve", "--server", &url, "--config", &config];
    let process =
        ChildProcess::start("pull", binary(), &[&args[..], &["--data-dir", &data]].concat());
    process.line_with("rabbit: lent to").await;
    let client = receiver.daemon.client();
    let offered = async || client.get("/v1/models").await.text().contains("\"rabbit\"");
    eventually("the model being offered", DEADLINE, offered).await;
    let body = json!({
        "model": "rabbit", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}],
    });
    let answer = client.post_json("/v1/chat/completions", &body).await;
    assert!(answer.text().contains("rabbit.0 "), "{}", answer.text());
}
