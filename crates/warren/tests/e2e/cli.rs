//! The command line, run to its end, and keys as tests make them.

use std::{path::Path, process::Stdio};

use serde_json::{Value, json};
use testkit::{Client, Daemon, Response, process::settings, within};
use tokio::process::Command;

use crate::common::binary;

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Its output as JSON, if it did what it should.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs `warren` with these arguments, with room for whole lists, and without settings of this environment.
pub(crate) async fn warren(args: &[&str]) -> Ran {
    run(Some("200"), args, None).await
}

/// The same for lists of this many columns, or as many as they have by themselves.
pub(crate) async fn warren_within(columns: Option<&str>, args: &[&str]) -> Ran {
    run(columns, args, None).await
}

/// The same with a home of its own: its settings and data are there.
pub(crate) async fn warren_at(home: &Path, args: &[&str]) -> Ran {
    run(Some("200"), args, Some(home)).await
}

async fn run(columns: Option<&str>, args: &[&str], home: Option<&Path>) -> Ran {
    let mut command = Command::new(binary());
    command.args(args).stdin(Stdio::null()).kill_on_drop(true).env_remove("COLUMNS");
    for variable in settings() {
        command.env_remove(variable);
    }
    command.envs(columns.map(|columns| ("COLUMNS", columns)));
    if let Some(home) = home {
        command.env("HOME", home).env("XDG_DATA_HOME", home).current_dir(home);
    }
    let output = within("a command", command.output()).await.expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Makes a key of this kind: `(id, text)`.
pub(crate) async fn make_key(daemon: &Daemon, key: Value) -> (String, String) {
    let mut asked = json!({"name": "test"});
    for (name, value) in key.as_object().expect("an object") {
        asked[name] = value.clone();
    }
    let made = daemon.admin().post_json("/admin/keys", &asked).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let text = |name: &str| made.json()[name].as_str().expect("text").to_owned();
    (text("id"), text("key"))
}

/// Revokes a key.
pub(crate) async fn revoke(daemon: &Daemon, id: &str) -> Response {
    daemon.admin().request("DELETE", &format!("/admin/keys/{id}")).send().await
}

/// A client with a key.
pub(crate) fn with_key(daemon: &Daemon, key: &str) -> Client {
    daemon.client().with_token(key)
}
