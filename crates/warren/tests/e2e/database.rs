//! A database that cannot be used: a clear message and the way out, and never a new one in its
//! place.

use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Output},
};

use rusqlite::Connection;

use crate::common::{binary, serve};

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

#[tokio::test]
async fn a_missing_database_is_made() {
    let serve = serve();
    let path = serve.data_dir().join("warren.db");
    assert!(!path.exists());
    let _daemon = serve.start().await;
    assert!(path.exists());
}

#[test]
fn a_file_that_is_no_database_is_told_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("warren.db");
    let content = "this is no database ".repeat(500);
    std::fs::write(&path, &content).unwrap();
    assert_refused(&refused(dir.path()), &["no database", "move it away"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
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

#[test]
fn a_newer_database_is_told_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("warren.db");
    let database = Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 9_999).unwrap();
    drop(database);
    assert_refused(&refused(dir.path()), &["newer version", "--data-dir"]);
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

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
