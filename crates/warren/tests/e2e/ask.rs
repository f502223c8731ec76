//! `warren ask` and `warren models`.

use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;
use testkit::{ChatScript, Daemon, MockBackend, WorkerProcess, process::settings, within};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    cli::Ran,
    common::{binary, lend, serve},
    room_people::saying,
    terminal::Terminal,
};

/// The variables that name a home directory, or what is in it.
const HOMES: [&str; 4] = ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// Somebody who asks the models of a server.
pub(crate) struct User {
    home: TempDir,
    server: String,
}

impl User {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        Self { home: TempDir::new().unwrap(), server: daemon.url() }
    }

    /// Runs a command with this text piped into it.
    async fn runs(&self, args: &[&str], piped: Option<&str>) -> Ran {
        let mut command = Command::new(binary());
        command.args(args).args(["--server", &self.server]).kill_on_drop(true);
        let input = if piped.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        for variable in settings() {
            command.env_remove(variable);
        }
        for variable in HOMES {
            command.env(variable, self.home.path());
        }
        let mut child = command.spawn().unwrap();
        if let Some(mut input) = child.stdin.take() {
            input.write_all(piped.unwrap_or_default().as_bytes()).await.unwrap();
        }
        let output = within("a command", child.wait_with_output()).await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    async fn asks(&self, args: &[&str]) -> Ran {
        self.runs(&[&["ask"], args].concat(), None).await
    }

    /// Starts a command in a terminal.
    pub(crate) fn terminal(&self, args: &[&str]) -> Terminal {
        let home = self.home.path().display().to_string();
        let args = [args, &["--server", &self.server]].concat();
        Terminal::start_with(&args, &HOMES.map(|variable| (variable, &*home)))
    }

    pub(crate) fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

/// A server with a backend that understands what it is asked.
pub(crate) async fn with_chat(daemon: &Daemon) -> (MockBackend, WorkerProcess) {
    let backend = ChatScript::new().start().await;
    let url = backend.url();
    let worker = WorkerProcess::start(binary(), &daemon.url(), &url, "gpu-box", &[]);
    daemon.has_workers(1).await;
    (backend, worker)
}

#[tokio::test]
async fn the_answer_is_all_that_is_printed_and_the_model_is_remembered() {
    let daemon = serve().start().await;
    let (_backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let several = user.asks(&["hi"]).await;
    assert_eq!((several.code, several.out.as_str()), (Some(2), ""), "{several:?}");
    assert!(several.err.contains("name one with --model: chat, "), "{several:?}");
    let asked = user.asks(&["--model", "chat", "hi", "there"]).await;
    assert_eq!(
        (asked.code, asked.out.as_str(), asked.err.as_str()),
        (Some(0), "You said: hi there\n", "")
    );
    let again = user.asks(&["-v", "again"]).await;
    assert_eq!((again.code, again.out.as_str()), (Some(0), "You said: again\n"), "{again:?}");
    assert!(again.err.contains("1 token read, ") && again.err.contains("tokens/s"), "{again:?}");
    let other = User::of(&daemon).asks(&["hi"]).await;
    assert_eq!(other.code, Some(2), "nobody else's choice counts: {other:?}");
}

#[tokio::test]
async fn what_is_piped_in_and_files_belong_to_the_question() {
    let daemon = serve().start().await;
    let (backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let ask = ["ask", "--model", "chat"];
    let asked = user.runs(&[&ask[..], &["-"]].concat(), Some("from a pipe\n")).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let content = |request: testkit::Received| request.json()["messages"][0]["content"].clone();
    assert_eq!(content(backend.request().await), "from a pipe");
    let notes = user.file("notes.md", b"three\n");
    let all = [&ask[..], &["one", "--file", &notes]].concat();
    assert_eq!(user.runs(&all, Some("two\n")).await.code, Some(0));
    let text = "one\n\ntwo\n\nnotes.md:\n\n```\nthree\n```";
    assert_eq!(content(backend.request().await), text);
    let picture = user.file("a.gif", b"GIF89a...");
    let seen = user.asks(&["--model", "chat", "what?", "--file", &picture]).await;
    assert_eq!(seen.out, "You said: what? (images: 1)\n", "{seen:?}");
    let nothing = user.asks(&["--model", "chat"]).await;
    assert!(nothing.code == Some(2) && nothing.err.contains("no question"), "{nothing:?}");
}

#[tokio::test]
async fn an_answer_as_json_is_one_object() {
    let daemon = serve().start().await;
    let (_backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let json = user.asks(&["--model", "reasoning", "--json", "--max-tokens", "2", "hi"]).await;
    assert!(json.err.contains("limit of tokens"), "{json:?}");
    let json = json.json();
    assert_eq!(
        (&json["model"], &json["answer"], &json["finish_reason"]),
        (&json!("reasoning"), &json!("You said: "), &json!("length")),
        "{json}"
    );
    assert!(json["usage"]["prompt_tokens"].is_u64(), "{json}");
}

#[tokio::test]
async fn thoughts_are_never_in_a_pipe() {
    let daemon = serve().start().await;
    let (_backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let hidden = user.asks(&["--model", "reasoning", "hi"]).await;
    assert_eq!((hidden.out.as_str(), hidden.err.as_str()), ("You said: hi\n", ""));
    let shown = user.asks(&["--thoughts", "show", "hi"]).await;
    assert_eq!(shown.out, "You said: hi\n");
    assert_eq!(shown.err, "Let me think about it.\n");
    let mut terminal = user.terminal(&["ask", "hi"]);
    terminal.shows("You said: hi").await;
    terminal.ends(0).await;
    let screen = terminal.screen();
    assert_eq!(screen, "Let me think about it.\n\nYou said: hi");
}

#[tokio::test]
async fn markdown_is_rendered_on_a_terminal_alone() {
    let daemon = serve().start().await;
    let words = &["# Ti", "tle\n\nsome **bo", "ld** words\n\n- o", "ne\n- two\n"];
    let backend = saying(words).await;
    let _worker = lend(&daemon, &backend, 1).await;
    let user = User::of(&daemon);
    assert_eq!(user.asks(&["hi"]).await.out, words.concat());
    let mut terminal = user.terminal(&["ask", "hi"]);
    terminal.shows("• two").await;
    terminal.ends(0).await;
    assert_eq!(terminal.screen(), "Title\n\nsome bold words\n\n• one\n• two");
    let mut raw = user.terminal(&["ask", "--raw", "hi"]);
    raw.shows("- two").await;
    raw.ends(0).await;
    assert_eq!(raw.screen(), words.concat().trim_end());
}

#[tokio::test]
async fn ctrl_c_ends_the_answer_at_its_backend() {
    let daemon = serve().start().await;
    let (backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let mut terminal = user.terminal(&["ask", "--model", "endless", "hi"]);
    terminal.shows("You said: hi").await;
    terminal.press("\u{3}").await;
    terminal.shows("cancelled").await;
    terminal.ends(1).await;
    backend.aborted(1).await;
    daemon.is_idle().await;
}

#[tokio::test]
async fn failures_have_their_exit_codes() {
    let daemon = serve().start().await;
    let (_backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let missing = user.asks(&["--model", "no-such", "hi"]).await;
    assert_eq!((missing.code, missing.out.as_str()), (Some(4), ""), "{missing:?}");
    assert!(missing.err.contains("no-such"), "{missing:?}");
    let refused = user.asks(&["--model", "error-400", "hi"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("the backend says 400"), "{refused:?}");
}

#[tokio::test]
async fn models_are_listed_with_their_machines_and_aliases() {
    let config = TempDir::new().unwrap();
    let file = config.path().join("warren.toml");
    std::fs::write(&file, "[models.fast]\ntargets = [\"chat\"]\n").unwrap();
    let daemon = serve().set("--config", &file.display().to_string()).start().await;
    let (_backend, _worker) = with_chat(&daemon).await;
    let user = User::of(&daemon);
    let listed = user.runs(&["models"], None).await;
    let row = |name: &str| {
        let row = listed.out.lines().find(|line| line.starts_with(name));
        row.unwrap_or_else(|| panic!("{listed:?}")).to_owned()
    };
    assert!(row("chat ").contains("gpu-box"), "{listed:?}");
    assert!(row("fast ").contains("= chat") && row("fast ").contains("ready"), "{listed:?}");
    assert!(listed.out.lines().all(|line| line.chars().count() <= 80), "{listed:?}");
    let json = user.runs(&["models", "--json"], None).await.json();
    let models = json["models"].as_array().unwrap();
    let fast = models.iter().find(|model| model["id"] == "fast").unwrap();
    assert_eq!(
        (&fast["targets"], &fast["machines"][0]["name"], &fast["state"]),
        (&json!(["chat"]), &json!("gpu-box"), &json!("ready")),
        "{json}"
    );
}

#[tokio::test]
async fn a_model_shows_what_it_costs_also_when_it_is_not_loaded_any_more() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&[]).await;
    let list = json!({"data": [{"id": "qwen3:8b", "owned_by": "library"}]});
    backend.set_get("/v1/models", list);
    let tag = |name: &str| json!({"name": name, "digest": name});
    backend.set_get("/api/tags", json!({"models": [tag("qwen3:8b")]}));
    let loaded = json!({"name": "qwen3:8b", "size": 6_442_450_944_u64, "context_length": 40_960});
    backend.set_get("/api/ps", json!({"models": [loaded]}));
    let url = backend.url();
    let _worker = WorkerProcess::start(binary(), &daemon.url(), &url, "gpu-box", &[]);
    let user = User::of(&daemon);
    testkit::eventually("its memory", testkit::DEADLINE, async || {
        user.runs(&["models"], None).await.out.contains("40960  6.0 GiB")
    })
    .await;
    backend.set_get("/api/ps", json!({"models": []}));
    backend.set_get("/api/tags", json!({"models": [tag("qwen3:8b"), tag("gemma3:4b")]}));
    backend.set_get(
        "/v1/models",
        json!({"data": [
            {"id": "qwen3:8b", "owned_by": "library"}, {"id": "gemma3:4b", "owned_by": "library"},
        ]}),
    );
    let id = daemon.workers().await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/admin/workers/{id}/refresh");
    assert_eq!(daemon.admin().post_json(&path, &json!({})).await.status, 202);
    testkit::eventually("another model", testkit::DEADLINE, async || {
        let listed = user.runs(&["models"], None).await.out;
        listed.contains("gemma3:4b") && listed.contains("6.0 GiB")
    })
    .await;
}
