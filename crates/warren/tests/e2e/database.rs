//! A database that cannot be used: a clear message and the way out, and never a new one in its
//! place. One that is moved away while the server runs. A clock that jumps.

use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Output},
};

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::{DEADLINE, Daemon, Response, eventually};

use crate::common::{CHAT, ask, binary, serve, skipped, with_clock};

/// A server on this data directory, run to its end.
fn refused(dir: &Path) -> Output {
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir);
    command.output().unwrap()
}

fn assert_refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in words.iter().chain(&["warren.db"]) {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

/// The header is fine, pages in the middle are not. Also for the command line that takes a stopped
/// server's place.
#[test]
fn a_damaged_database_is_told_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("warren.db");
    let key = |args: &[&str]| {
        Command::new(binary()).arg("key").args(args).arg("--data-dir").arg(dir.path()).output()
    };
    assert!(key(&["create", "--name", "n"]).unwrap().status.success());
    let mut content = std::fs::read(&path).unwrap();
    let pages = content.len() / 4096;
    assert!(pages > 4, "{pages} pages");
    content[4096 * 2..4096 * (pages - 1)].fill(0xa5);
    std::fs::write(&path, &content).unwrap();
    let words = ["damaged", "backup", "move it away"];
    assert_refused(&refused(dir.path()), &words);
    assert_refused(&key(&["list"]).unwrap(), &words);
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

/// Something that nobody may write, root included.
#[test]
fn a_directory_in_place_of_a_database_is_told_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("warren.db")).unwrap();
    assert_refused(&refused(dir.path()), &["cannot be written", "--data-dir"]);
    assert!(dir.path().join("warren.db").is_dir());
}

/// A server whose database was moved away on purpose starts without it; otherwise it says so.
#[tokio::test]
async fn a_database_that_is_gone_is_made_anew_with_a_warning() {
    let serve = serve();
    let path = serve.data_dir().join("warren.db");
    let mut daemon = serve.start().await;
    assert!(!daemon.log().contains("is gone"), "{}", daemon.log());
    std::fs::remove_file(&path).unwrap();
    daemon.stop_and_restart().await;
    daemon.line_with("is gone: an empty one is made").await;
    assert!(path.exists());
}

/// Root may write everything, so that the server is somebody else here.
#[test]
fn a_read_only_database_is_told() {
    const NOBODY: u32 = 65_534;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("warren.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&path, 0o444);
    mode(dir.path(), 0o777);
    let copy = dir.path().join("warren");
    // By another process: whatever this one starts meanwhile would hold the copy open for writing.
    assert!(Command::new("cp").arg(binary()).arg(&copy).status().unwrap().success());
    let mut command = Command::new(&copy);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
    if is_root() {
        command.uid(NOBODY).current_dir(dir.path());
    }
    assert_refused(&command.output().unwrap(), &["cannot be written", "--data-dir"]);
}

async fn make_key(daemon: &Daemon, name: &str) -> Response {
    let key = json!({"name": name, "scopes": ["inference"]});
    daemon.admin().post_json("/admin/keys", &key).await
}

async fn key_names(daemon: &Daemon) -> Vec<String> {
    let keys = daemon.admin().get("/admin/keys").await.json();
    let name = |key: &Value| key["name"].as_str().unwrap().to_owned();
    let mut names: Vec<_> = keys["keys"].as_array().unwrap().iter().map(name).collect();
    names.sort();
    names
}

async fn is_degraded(daemon: &Daemon, word: &str) {
    let told = async || {
        let health = daemon.health().await;
        health["status"] == "degraded" && health["degraded"].as_str().unwrap().contains(word)
    };
    eventually(&format!("word of {word:?}"), DEADLINE, told).await;
}

async fn is_ok_again(daemon: &Daemon) {
    let ok = async || daemon.health().await["status"] == "ok";
    eventually("its recovery", DEADLINE, ok).await;
}

#[track_caller]
fn assert_not_kept(made: &Response) {
    let error = made.json();
    let words = error["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(made.status, 503, "{error}");
    assert!(words.contains("warren.db") && words.contains("stop the server"), "{error}");
}

#[tokio::test]
async fn a_database_that_is_moved_away_keeps_nothing_until_it_is_back() {
    let serve = serve();
    let (path, aside) = (serve.data_dir().join("warren.db"), serve.data_dir().join("aside"));
    let mut daemon = serve.start().await;
    assert_eq!(make_key(&daemon, "before").await.status, 201);
    std::fs::rename(&path, &aside).unwrap();
    assert_not_kept(&make_key(&daemon, "lost").await);
    is_degraded(&daemon, "is gone").await;
    daemon.line_with("the database is not written").await;
    assert!(daemon.metrics().await.contains("warren_database_degraded 1"));
    assert_eq!(daemon.client().get("/v1/models").await.status, 200, "requests are served");
    std::fs::copy(&aside, &path).unwrap();
    assert_not_kept(&make_key(&daemon, "in another file").await);
    std::fs::rename(&aside, &path).unwrap();
    is_ok_again(&daemon).await;
    daemon.line_with("the database is written again").await;
    assert_eq!(make_key(&daemon, "after").await.status, 201);
    daemon.kill_and_restart().await;
    assert_eq!(key_names(&daemon).await, ["after", "before"]);
}

#[tokio::test]
async fn one_start_with_a_clock_far_ahead_deletes_no_usage() {
    let Some((serve, clock)) = with_clock("+0") else {
        return skipped("there is no libfaketime here");
    };
    let mut daemon = serve.start().await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 404);
    eventually("the row", DEADLINE, async || unknown_rows(&daemon).await == Some(1)).await;
    clock.set("+400d");
    daemon.stop_and_restart().await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 404);
    eventually("its row", DEADLINE, async || unknown_rows(&daemon).await == Some(2)).await;
    clock.set("+0");
    daemon.stop_and_restart().await;
    assert_eq!(unknown_rows(&daemon).await, Some(2));
}

/// The number of all rows, if the first is for models whose names nobody but a client knows.
async fn unknown_rows(daemon: &Daemon) -> Option<u64> {
    let usage = daemon.admin().get("/admin/usage?by=model").await.json();
    let is_unknown = usage["rows"][0]["model"] == "unknown";
    usage["totals"]["requests"].as_u64().filter(|_| is_unknown)
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
