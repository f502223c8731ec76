//! Commands find the server that runs on their machine, and say when there is none.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde_json::Value;
use testkit::{ChildProcess, DEADLINE, Form, RawServer, RefusingPort, eventually};

use crate::{
    cli::{warren, warren_at},
    common::{binary, join, serve},
};

/// A command of each kind: of the administrator, of a key, of rooms, of the workspace.
const COMMANDS: [&[&str]; 7] = [
    &["status"],
    &["usage"],
    &["key", "list"],
    &["mesh", "peers"],
    &["room", "list"],
    &["session", "list"],
    &["cluster", "list"],
];

/// A server on a port that the system chooses, with the usual data directory of a home; and that directory.
async fn at_home(home: &Path) -> (ChildProcess, PathBuf) {
    let dir = home.join("warren");
    let shown = dir.display().to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &shown];
    let server = ChildProcess::start_at(home, "server", binary(), &args);
    server.listening("http").await;
    (server, dir)
}

#[tokio::test]
async fn a_server_on_any_port_is_found_by_every_command() {
    let home = tempfile::tempdir().unwrap();
    let (mut server, dir) = at_home(home.path()).await;
    for command in COMMANDS {
        let asked = warren_at(home.path(), command).await;
        match command[0] {
            "mesh" => assert!(asked.err.contains("takes no part in the mesh"), "{asked:?}"),
            _ => assert_eq!(asked.code, Some(0), "{command:?}: {asked:?}"),
        }
    }
    let file = dir.join("server.json");
    let told: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(told["pid"], server.pid());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    server.sigterm();
    assert_eq!(server.exit().await, Some(0));
    assert!(!file.exists(), "it ended cleanly");
}

#[tokio::test]
async fn every_command_says_that_no_server_runs() {
    let home = tempfile::tempdir().unwrap();
    let refusing = RefusingPort::take();
    let listen = refusing.url().replace("http://", "");
    // Where this configuration's server would listen nobody does.
    fs::write(home.path().join("warren.toml"), format!("listen = \"{listen}\"\n")).unwrap();
    for command in COMMANDS {
        let asked = warren_at(home.path(), command).await;
        assert_eq!(asked.code, Some(3), "{command:?}: {asked:?}");
        let words = "error: no server runs here: start one with `warren up`";
        assert!(asked.err.contains(words), "{command:?}: {asked:?}");
    }
}

#[tokio::test]
async fn a_server_that_was_killed_is_not_looked_for_where_it_was() {
    let home = tempfile::tempdir().unwrap();
    let (mut server, dir) = at_home(home.path()).await;
    server.kill9().await;
    assert!(dir.join("server.json").exists());
    // A stopped server is worked on without it.
    let shown = dir.display().to_string();
    let listed = warren_at(home.path(), &["key", "list", "--data-dir", &shown]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
}

#[tokio::test]
async fn an_address_is_understood_as_people_write_it() {
    let serve = serve();
    let dir = serve.data_dir().display().to_string();
    let daemon = serve.start().await;
    let address = daemon.address().to_string();
    for server in [address.clone(), format!("http://{address}/v1"), format!("{address}/v1/")] {
        for command in [&["status"][..], &["session", "list"]] {
            let args = [command, &["--server", &server, "--data-dir", &dir]].concat();
            let asked = warren(&args).await;
            assert_eq!(asked.code, Some(0), "{server}: {asked:?}");
        }
    }
    let secret = ["--secret", testkit::daemon::WORKER_SECRET, "--demo"];
    let worker = [&["worker", "--server", &address][..], &secret].concat();
    let _worker = ChildProcess::start("worker", binary(), &worker);
    daemon.has_workers(1).await;
}

#[tokio::test]
async fn what_answers_and_is_no_warren_is_said_in_a_line() {
    let other = RawServer::start().await;
    let url = other.url();
    let args = ["status", "--server", &url, "--admin-token", "t"];
    let serve = async {
        loop {
            let (mut connection, _) = other.request().await;
            connection.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno\n").await;
        }
    };
    let asked = tokio::select! {
        asked = warren(&args) => asked,
        () = serve => unreachable!("it serves for ever"),
    };
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.err.contains(&format!("what answers at {url} is no Warren")), "{asked:?}");
    let daemon = crate::common::serve().start().await;
    let https = format!("https://{}", daemon.address());
    let asked = warren(&["status", "--server", &https, "--admin-token", "t"]).await;
    assert!(asked.err.contains("write http://"), "{asked:?}");
}

#[tokio::test]
async fn the_configuration_names_a_server_for_all_commands() {
    let home = tempfile::tempdir().unwrap();
    let daemon = serve().start().await;
    let _worker = join(&daemon, Form::Stock, "gpu", 1).await;
    let text = format!("server = [\"{}\"]\n", daemon.url());
    fs::write(home.path().join("warren.toml"), text).unwrap();
    let token = fs::read_to_string(daemon.data_dir().join("admin.token")).unwrap();
    let status = async || {
        let args = ["status", "--json", "--admin-token", token.trim()];
        warren_at(home.path(), &args).await.json()["health"]["workers_connected"] == 1
    };
    eventually("the configured server's status", DEADLINE, status).await;
}
