//! `warren model pull`: from a hub of the documented shape, and from peers.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{DEADLINE, Daemon, FakeModelHub, GgufFile, eventually};

use crate::{
    cli::{Ran, warren_at},
    mesh::servers::{lan_address, mesh, node},
};

const REPO: &str = "org/Tiny-GGUF";
const FILE: &str = "Tiny-Q4_K_M.gguf";
const ID: &str = "org/Tiny-GGUF:Q4_K_M";

/// A model of about a megabyte.
fn model() -> Vec<u8> {
    GgufFile::model().tensor("more", &[512, 512]).bytes(7)
}

async fn hub() -> FakeModelHub {
    let hub = FakeModelHub::start().await;
    hub.put(REPO, FILE, &model());
    hub.put(REPO, "Tiny-F16.gguf", &GgufFile::model().tensor("more", &[512, 1024]).bytes(1));
    hub.put(REPO, "README.md", b"words");
    hub
}

/// Runs the command with a home of its own.
async fn pull(hub: &FakeModelHub, data: &Path, args: &[&str]) -> Ran {
    let data_dir = data.to_str().unwrap();
    let all = [&["model", "pull", "--endpoint", &hub.url, "--data-dir", data_dir], args].concat();
    warren_at(data, &all).await
}

fn installed(data: &Path) -> PathBuf {
    data.join("models").join(ID).join(FILE)
}

fn last(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(ran.out.lines().last().unwrap()).unwrap()
}

#[tokio::test]
async fn a_model_is_proposed_fetched_and_not_fetched_twice() {
    let (hub, data) = (hub().await, TempDir::new().unwrap());
    let ran = pull(&hub, data.path(), &[REPO]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("taking Q4_K_M, 1.0 MiB"), "{ran:?}");
    assert!(ran.out.contains(ID) && ran.out.contains("is here, 1.0 MiB from 127.0.0.1"), "{ran:?}");
    assert!(ran.err.contains("warren up --gguf"), "{ran:?}");
    assert_eq!(fs::read(installed(data.path())).unwrap(), model());
    let before = hub.downloads().len();
    let again = last(&pull(&hub, data.path(), &[REPO, "--json"]).await);
    assert_eq!((&again["state"], &again["from"]), (&json!("done"), &json!("here")));
    assert_eq!(again["file"], json!(installed(data.path())));
    let model_itself = hub
        .downloads()
        .iter()
        .skip(before)
        .filter(|request| request.head.header("range").is_none())
        .count();
    assert_eq!(model_itself, 0, "only the head is looked at");
}

#[tokio::test]
async fn quantizations_are_listed_with_what_they_take() {
    let (hub, data) = (hub().await, TempDir::new().unwrap());
    let list = pull(&hub, data.path(), &[REPO, "--list", "--json"]).await.json();
    let names: Vec<&Value> =
        list["quantizations"].as_array().unwrap().iter().map(|row| &row["quantization"]).collect();
    assert_eq!(names, ["Q4_K_M", "F16"]);
    let row = &list["quantizations"][0];
    assert_eq!((&row["proposed"], &row["bytes"]), (&json!(true), &json!(model().len())));
    assert!(row["memory_bytes"].as_u64() > row["bytes"].as_u64(), "{row}");
    assert_eq!(list["context_tokens"], 512, "that for which the model was made");
    let table = pull(&hub, data.path(), &[REPO, "--list"]).await;
    assert!(table.out.contains("QUANTIZATION") && table.out.contains("yes, proposed"), "{table:?}");
    assert!(!data.path().join("models").exists());
}

#[tokio::test]
async fn what_cannot_be_fetched_says_what_to_do() {
    let (hub, data) = (hub().await, TempDir::new().unwrap());
    hub.put("org/Words", "README.md", b"words");
    hub.refuse("org/Gated", 401, "x-error-code: GatedRepo\r\n");
    for (args, code, words) in [
        (&["no-name"][..], 2, "write ORG/REPO"),
        (&["org/Nothing"], 4, "check the name"),
        (&["org/Words"], 4, "has no GGUF files"),
        (&["org/Gated"], 1, "accept the licence at"),
        (&["org/Tiny-GGUF:Q4_K_S"], 4, "has no Q4_K_S; it has Q4_K_M"),
        (&[REPO, "--revision", "v9"], 4, "has no revision v9"),
    ] {
        let ran = pull(&hub, data.path(), args).await;
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.err.contains(words), "{ran:?}");
    }
    let (server, _port) = testkit::RawServer::with_spare();
    let nobody = server.url();
    drop(server);
    let data_dir = data.path().to_str().unwrap();
    let args = ["model", "pull", REPO, "--endpoint", "ftp://hub", "--data-dir", data_dir];
    let ran = warren_at(data.path(), &args).await;
    assert_eq!(ran.code, Some(2), "{nobody}: {ran:?}");
    assert!(ran.err.contains("HF_ENDPOINT"), "{ran:?}");
}

#[tokio::test]
async fn another_content_of_the_name_is_replaced_only_if_that_is_wanted() {
    let (hub, data) = (hub().await, TempDir::new().unwrap());
    last(&pull(&hub, data.path(), &[ID, "--json"]).await);
    let newer = GgufFile::model().tensor("more", &[512, 300]).bytes(9);
    hub.put(REPO, FILE, &newer);
    let ran = pull(&hub, data.path(), &[ID]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("is there already with other content"), "{ran:?}");
    assert!(ran.err.contains("--replace"), "{ran:?}");
    last(&pull(&hub, data.path(), &[ID, "--json", "--replace"]).await);
    assert_eq!(fs::read(installed(data.path())).unwrap(), newer);
}

async fn offers_files(daemon: &Daemon) {
    eventually("a peer that passes the model on", DEADLINE, async || {
        let models = mesh(daemon, &["models", "--json"]).await.json();
        let has = |model: &Value| {
            model["id"] == ID && model["offered_by"].as_array().is_some_and(|by| !by.is_empty())
        };
        models["models"].as_array().unwrap().iter().any(has)
    })
    .await;
}

#[tokio::test]
async fn peers_that_have_the_model_are_asked_first_and_not_believed() {
    let hub = hub().await;
    let holder = node("holder").set("--mesh-share", "peers").set("--mesh-passcode", "ours");
    last(&pull(&hub, holder.data_dir(), &[ID, "--json"]).await);
    let holder = holder.start().await;
    let address = lan_address(&holder).await;
    let other = node("other").set("--mesh-peer", &address).set("--mesh-passcode", "ours");
    let other = other.start().await;
    offers_files(&other).await;
    let whole = |hub: &FakeModelHub| {
        hub.downloads().iter().filter(|request| request.head.header("range").is_none()).count()
    };
    let before = whole(&hub);
    let ran = pull(&hub, other.data_dir(), &[ID]).await;
    assert!(ran.out.contains("is here, 1.0 MiB from peers"), "{ran:?}");
    assert_eq!(fs::read(installed(other.data_dir())).unwrap(), model());
    assert_eq!(whole(&hub), before, "the hub was not asked for the file");
    // What the hub has now is what counts.
    let newer = GgufFile::model().tensor("more", &[512, 300]).bytes(9);
    hub.put(REPO, FILE, &newer);
    let ran = pull(&hub, other.data_dir(), &[ID, "--replace"]).await;
    assert!(ran.err.contains("is not what the hub has: asking the hub"), "{ran:?}");
    assert_eq!(fs::read(installed(other.data_dir())).unwrap(), newer);
}
