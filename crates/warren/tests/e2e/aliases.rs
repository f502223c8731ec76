//! Names that stand for models, from the configuration file to the backend.

use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use testkit::{Form, Serve};

use crate::common::{CHAT, MESSAGES, ask_for, join, post, serve};

/// A configuration file with this text, and the directory that it is in.
fn config(text: &str) -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("warren.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

fn serve_with(path: &Path) -> Serve {
    serve().set("--config", path.to_str().unwrap())
}

#[tokio::test]
async fn an_alias_is_listed_served_and_falls_back() {
    let (_directory, path) = config(
        "[models.\"fast:latest\"]\ntargets = [\"absent\", \"m\"]\ndefaults = { temperature = 0.5 }\n",
    );
    let daemon = serve_with(&path).start().await;
    let mut worker = join(&daemon, Form::Binary, "w", 2).await;
    let models = daemon.client().get("/v1/models").await.json();
    let ids: Vec<&str> =
        models["data"].as_array().unwrap().iter().filter_map(|m| m["id"].as_str()).collect();
    assert_eq!(ids, ["fast:latest", "m"]);
    for api in [CHAT, MESSAGES] {
        let asked = post(&daemon.client(), api, ask_for("fast:latest", false));
        let job = worker.expect_job().await;
        let body: serde_json::Value = serde_json::from_slice(&job.body).unwrap();
        assert_eq!(
            (job.model.as_str(), &body["model"], &body["temperature"]),
            ("m", &json!("m"), &json!(0.5))
        );
        worker.complete(&job, 200, &json!({"it": "works"})).await;
        assert_eq!(asked.await.unwrap().json(), json!({"it": "works"}));
    }
    let counted = daemon.metrics().await;
    assert!(counted.contains("model=\"fast:latest\""), "counted under its own name: {counted}");
}

#[tokio::test]
async fn a_wrong_alias_keeps_the_server_from_starting_and_is_named() {
    let cases = [
        ("[models.fast]\ntargets = []\n", "[models.\"fast\"] names no model"),
        ("[models.fast]\ntargets = ['fast']\n", "which is an alias itself"),
        ("[models.fast]\ntargets = ['m']\ndefault = {}\n", "unknown field `default`"),
        (
            "[models.fast]\ntargets = ['m']\ndefaults = { stream = true }\n",
            "`stream` can have no default",
        ),
    ];
    for (text, words) in cases {
        let (_directory, path) = config(text);
        let mut process = serve_with(&path).spawn();
        assert_eq!(process.exit().await, Some(2), "{text}");
        assert!(process.log().contains(words), "{words}: {}", process.log());
    }
}

/// A model server that takes `latest` for a missing tag lists its models with it. Both names are one
/// model: for requests, for keys, and in what is counted.
#[tokio::test]
async fn a_model_with_the_tag_latest_is_one_model() {
    let daemon = serve().flag("--require-key").start().await;
    let mut worker =
        testkit::Connect::to(&daemon).form(Form::Stock).join("w", &["llama3:latest"], 2).await;
    let key = json!({"name": "ann", "models": ["llama3"]});
    let key = daemon.admin().post_json("/admin/keys", &key).await.json();
    let client = daemon.client().with_token(key["key"].as_str().unwrap());
    for name in ["llama3", "llama3:latest"] {
        let asked = post(&client, CHAT, ask_for(name, false));
        let job = worker.expect_job().await;
        let body: serde_json::Value = serde_json::from_slice(&job.body).unwrap();
        assert_eq!(
            (job.model.as_str(), &body["model"]),
            ("llama3:latest", &json!("llama3:latest"))
        );
        worker.complete(&job, 200, &json!({"it": "works"})).await;
        assert_eq!(asked.await.unwrap().status, 200);
    }
    let models = client.get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "llama3:latest", "{models}");
    let counted = async || {
        let usage = daemon.admin().get("/admin/usage?by=model").await.json();
        let rows = usage["rows"].as_array().cloned().unwrap_or_default();
        rows.len() == 1 && rows[0]["model"] == "llama3:latest" && rows[0]["requests"] == 2
    };
    testkit::eventually("one row of two requests", testkit::DEADLINE, counted).await;
}
