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
    std::fs::copy(binary(), &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
    if is_root() {
        command.uid(NOBODY).current_dir(dir.path());
    }
    assert_refused(&command.output().unwrap(), &["cannot be written"]);
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
