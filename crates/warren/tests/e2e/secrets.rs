//! A key's text is shown once. It is in no file and, whatever is logged, on no line of the log; nor is
//! what people ask.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Connect, Form, MockBackend, WorkerProcess, daemon::WORKER_SECRET};

use crate::{
    cli::{make_key, revoke, warren, with_key},
    common::{CHAT, ask, binary, serve},
};

/// The files of a directory that have a text in them.
fn files_with(dir: &Path, text: &str) -> Vec<String> {
    let has = |path: &Path| {
        let content = std::fs::read(path).unwrap();
        content.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| has(path)).map(|path| path.display().to_string()).collect()
}

#[tokio::test]
async fn a_keys_text_is_kept_nowhere() {
    let serve = serve().set("--log", "trace");
    let dir = serve.data_dir().to_owned();
    let mut daemon = serve.start().await;
    let backend = MockBackend::start(&["m"]).await;
    let args = ["--models", "m", "--max-concurrent", "1", "--log", "trace"];
    let lender = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "lender", &args);
    daemon.has_workers(1).await;
    let (id, first) = make_key(&daemon, json!({"scopes": ["inference", "worker"]})).await;
    let mut private = ask(false);
    private["messages"][0]["content"] = json!("a private matter");
    assert_eq!(with_key(&daemon, &first).post_json(CHAT, &private).await.status, 200);
    let worker = Connect::new(daemon.address()).header("x-worker-secret", &first);
    let worker = worker.form(Form::Binary).join("by-key", &["m"], 1).await;
    let rotated = daemon.admin().post_json(&format!("/admin/keys/{id}/rotate"), &json!({})).await;
    let second = rotated.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(with_key(&daemon, &first).post_json(CHAT, &ask(false)).await.status, 401);
    // In a path and in a query, too, where somebody puts it by mistake.
    let in_path = format!("/admin/keys/{second}");
    assert_eq!(daemon.admin().request("DELETE", &in_path).send().await.status, 404);
    let node = format!("/ws?token={second}&model=m&max_concurrency=1&name=n");
    daemon.client().get(&node).await;
    assert_eq!(revoke(&daemon, &id).await.status, 200);
    let usage: Value = daemon.admin().get("/admin/usage?by=key").await.json();
    let audit = daemon.admin().get("/admin/audit").await.text();
    drop(worker);
    daemon.sigterm();
    assert_eq!(daemon.exit().await, Some(0));

    let listed = warren(&["key", "list", "--json", "--data-dir", &dir.display().to_string()]).await;
    let secrets = [first, second].map(|text| text.trim_start_matches("wk_").to_owned());
    assert!(daemon.log().contains("TRACE"), "all there is to log is logged");
    lender.line_with("INFO").await;
    for log in [daemon.log(), lender.log()] {
        assert!(!log.contains("a private matter") && !log.contains(WORKER_SECRET), "{log}");
    }
    for secret in &secrets {
        assert_eq!(files_with(&dir, secret), [""; 0]);
        for told in [&daemon.log(), &usage.to_string(), &audit, &listed.out] {
            assert!(!told.contains(secret), "{told}");
        }
    }
    // The search finds what is there.
    assert!(!files_with(&dir, &id).is_empty());
    assert!(listed.out.contains(&secrets[1][..8]), "the prefix is there");
}

#[tokio::test]
async fn a_cluster_token_that_can_be_guessed_is_warned_of_without_being_told() {
    let daemon = serve().set("--cluster-token", "rabbit").set("--peer-listen", "127.0.0.1:0");
    let daemon = daemon.start().await;
    let line = daemon.line_with("the cluster token has only 6 characters").await;
    assert!(line.contains("WARN") && !line.contains("rabbit"), "{line}");
}
