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
