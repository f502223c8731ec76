//! The log of a running server: over HTTP, and by `warren logs` and `warren version`.

use serde_json::{Value, json};
use testkit::{ChildProcess, Daemon, Form, RefusingPort};

use crate::{
    cli::{make_key, warren, with_key},
    common::{CHAT, ask, binary, join, post, serve},
};

const PROMPT: &str = "a prompt that nobody else may read";

/// A server with the line of an answered request in its log.
async fn with_a_request() -> Daemon {
    let daemon = serve().start().await;
    let mut worker = join(&daemon, Form::Binary, "gpu", 1).await;
    let mut asked = ask(false);
    asked["messages"][0]["content"] = json!(PROMPT);
    let posted = post(&daemon.client(), CHAT, asked);
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    posted.await.unwrap();
    daemon.line_with("outcome=\"answered\"").await;
    daemon
}

fn flags(daemon: &Daemon) -> [String; 4] {
    let directory = daemon.data_dir().display().to_string();
    ["--server".to_owned(), daemon.url(), "--data-dir".to_owned(), directory]
}

/// Runs `warren logs` against the server.
async fn logs(daemon: &Daemon, args: &[&str]) -> String {
    let flags = flags(daemon);
    let mut all = vec!["logs"];
    all.extend(flags.iter().map(String::as_str).chain(args.iter().copied()));
    let ran = warren(&all).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out
}

#[tokio::test]
async fn the_log_is_shown_to_operators_only_and_holds_no_secret_and_no_prompt() {
    let daemon = with_a_request().await;
    let (_, key) = make_key(&daemon, json!({})).await;
    assert_eq!(daemon.client().get("/admin/logs").await.status, 401);
    assert_eq!(with_key(&daemon, &key).get("/admin/logs").await.status, 403);
    let token = std::fs::read_to_string(daemon.data_dir().join("admin.token")).unwrap();
    let text = logs(&daemon, &["-n", "all"]).await;
    assert!(text.contains("outcome=\"answered\""), "{text}");
    for hidden in [PROMPT, key.as_str(), token.trim()] {
        assert!(!text.contains(hidden), "{text}");
    }
}

#[tokio::test]
async fn the_newest_lines_are_shown_by_number_and_level() {
    let daemon = with_a_request().await;
    assert_eq!(logs(&daemon, &["-n", "1"]).await.lines().count(), 1);
    assert_eq!(logs(&daemon, &["--level", "error"]).await, "");
    let json = logs(&daemon, &["--json"]).await;
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let request = lines.iter().find(|line| line["text"].as_str().unwrap().contains("answered"));
    assert_eq!(request.unwrap()["level"], "info");
    let numbers: Vec<u64> = lines.iter().map(|line| line["n"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    let bad = daemon.admin().get("/admin/logs?since=7d").await;
    assert!(bad.status == 400 && bad.text().contains("limit=N"), "{}", bad.text());
}

#[tokio::test]
async fn a_log_is_followed_until_the_server_stops() {
    let daemon = serve().start().await;
    let mut args = vec!["logs".to_owned(), "--follow".to_owned()];
    args.extend(flags(&daemon));
    let mut following = ChildProcess::start("logs", binary(), &args);
    following.line_with("INFO").await;
    let _worker = join(&daemon, Form::Binary, "late-worker", 1).await;
    following.line_with("late-worker").await;
    daemon.sigterm();
    following.line_with("stopping").await;
    following.line_with("the server stops").await;
    assert_eq!(following.exit().await, Some(0));
}

#[tokio::test]
async fn up_shows_warnings_only_and_its_log_has_the_rest() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().display().to_string();
    let args = ["up", "--demo", "--listen", "127.0.0.1:0", "--data-dir", &directory];
    let process = ChildProcess::start("up", binary(), &args);
    let url = format!("http://{}", process.listening("http").await);
    process.line_with("offers").await;
    let ran = warren(&["logs", "--server", &url, "--data-dir", &directory]).await;
    assert!(ran.out.contains("INFO"), "{ran:?}");
    assert!(!process.log().contains("INFO"), "{}", process.log());
}

#[tokio::test]
async fn a_log_that_cannot_be_had_says_where_it_may_be() {
    let refusing = RefusingPort::take();
    let home = tempfile::tempdir().unwrap();
    let url = refusing.url();
    let args = ["logs", "--server", &url, "--admin-token", "t"];
    let mut nobody = ChildProcess::start_at(home.path(), "logs", binary(), &args);
    let line = nobody.line_with("no log was found").await;
    assert!(line.contains("could not reach the server"), "{line}");
    assert_eq!(nobody.exit().await, Some(3));
}

#[tokio::test]
async fn the_versions_of_program_and_server_are_shown() {
    let daemon = serve().start().await;
    let version = warren(&["version", "--json", "--server", &daemon.url()]).await.json();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(version["server"], json!({"url": daemon.url(), "version": version["version"]}));
    let refusing = RefusingPort::take();
    let alone = warren(&["version", "--server", &refusing.url()]).await;
    assert_eq!(alone.code, Some(0));
    assert!(alone.out.contains("no server answers"), "{alone:?}");
}
