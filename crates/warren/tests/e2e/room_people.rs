//! People at the command line of rooms: each with a home directory of their own.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{ChildProcess, Gate, MockBackend, Reply, chat::delta, process::settings, within};
use tokio::process::Command;

use crate::{cli::Ran, common::binary, terminal::Terminal};

/// The variables that name a home directory, or what is in it.
const HOMES: [&str; 4] = ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// Somebody who uses a server.
pub(crate) struct Person {
    home: TempDir,
    server: String,
}

impl Person {
    pub(crate) fn of(server: &str) -> Self {
        Self { home: TempDir::new().unwrap(), server: server.to_owned() }
    }

    /// Writes the configuration file.
    pub(crate) fn configures(&self, text: &str) {
        let directory = self.home.path().join("warren");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("warren.toml"), text).unwrap();
    }

    /// Sets the environment: of the one that runs the tests no settings count.
    fn environment(&self) -> Vec<String> {
        let home = self.home.path().display();
        let unset = settings().map(|name| format!("--unset={}", name.display()));
        let mut all: Vec<String> = unset.collect();
        for variable in HOMES {
            all.push(format!("{variable}={home}"));
        }
        all.push(binary().display().to_string());
        all
    }

    fn command(&self, args: &[&str]) -> Vec<String> {
        let mut all = self.environment();
        all.push("room".to_owned());
        all.extend(args.iter().map(|&arg| arg.to_owned()));
        if !args.contains(&"--server") {
            all.extend(["--server".to_owned(), self.server.clone()]);
        }
        all
    }

    /// Runs `warren room` to its end.
    pub(crate) async fn room(&self, args: &[&str]) -> Ran {
        let mut command = Command::new("env");
        command.args(self.command(args)).stdin(std::process::Stdio::null()).kill_on_drop(true);
        let output = within("a command", command.output()).await.expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Starts the binary in a terminal, without a server in its arguments.
    pub(crate) fn terminal(&self, args: &[&str]) -> Terminal {
        let home = self.home.path().display().to_string();
        Terminal::start_with(args, &HOMES.map(|variable| (variable, &*home)))
    }

    /// Starts `warren room`, which goes on.
    pub(crate) fn start(&self, args: &[&str]) -> ChildProcess {
        ChildProcess::start(args[0], Path::new("/usr/bin/env"), &self.command(args))
    }

    /// Makes a room: its spoken code.
    pub(crate) async fn creates(&self, args: &[&str]) -> String {
        let made = self.room(&[&["create", "--json"], args].concat()).await.json();
        made["room"]["spokenCode"].as_str().expect("a code").to_owned()
    }

    /// Lends a backend to a room, and is in it.
    pub(crate) async fn joins(
        &self,
        code: &str,
        backend: &MockBackend,
        more: &[&str],
    ) -> ChildProcess {
        let url = backend.url();
        let join = self.start(&[&["join", code, "--backend", &url], more].concat());
        join.line_with("joined").await;
        join
    }

    pub(crate) async fn participants(&self, code: &str) -> Vec<Value> {
        let shown = self.room(&["show", code, "--json"]).await.json();
        shown["participants"].as_array().expect("a list").clone()
    }
}

/// A backend of the model `m`, which says `words` one after the other.
pub(crate) async fn saying(words: &'static [&'static str]) -> MockBackend {
    let backend = MockBackend::start(&["m"]).await;
    backend.answer_with(move |_| {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 7}});
        let end = format!("data: {usage}\n\ndata: [DONE]\n\n");
        Reply::stream(words.iter().map(|word| delta(word)).chain([end]), &Gate::opened())
    });
    backend
}
