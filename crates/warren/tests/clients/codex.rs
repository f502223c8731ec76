//! Codex of npm: it speaks Responses, streamed, with tools of several kinds.

use serde_json::json;
use testkit::ChatScript;

use crate::{
    house::{House, KEY},
    program::{Program, installed},
};

fn codex(house: &House, model: &str, prompt: &str) -> Program {
    let program = Program::new(installed("codex").join("node_modules/.bin/codex"));
    let config = format!(
        "model = \"{model}\"\nmodel_provider = \"warren\"\n\n[model_providers.warren]\n\
         name = \"Warren\"\nbase_url = \"{}/v1\"\nenv_key = \"WARREN_KEY\"\n\
         wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        house.daemon.url()
    );
    program.file(".codex/config.toml", &config);
    // The sandbox of its own needs what a container may not give; this one's home is a test's.
    let open = ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"];
    program.env("WARREN_KEY", KEY).args(open).args([prompt])
}

#[tokio::test]
async fn calls_a_tool() {
    let script = ChatScript::new()
        .calling("exec_command", json!({"cmd": "echo hare-$((40 + 2)) >note; cat note"}));
    let (house, backend) = House::chat_only(script).await;
    let log = codex(&house, "chat", "What does the note say?").run().await.well();
    let told = log.split("The tools said:").nth(1).unwrap_or_else(|| panic!("{log}"));
    assert!(told.contains("hare-42"), "{log}");
    assert_eq!(backend.request().await.target, "/v1/chat/completions");
}

#[tokio::test]
async fn tells_what_was_thought() {
    let (house, _backend) = House::chat_only(ChatScript::new()).await;
    let log = codex(&house, "reasoning", "hi").run().await.well();
    assert!(log.contains("You said: hi"), "{log}");
}

#[tokio::test]
async fn tells_an_error_in_words() {
    let (house, _backend) = House::chat_only(ChatScript::new()).await;
    let ended = codex(&house, "error-400", "hi").run().await;
    assert_ne!(ended.code, Some(0));
    assert!(ended.log.contains("the backend says 400"), "{}", ended.log);
}

#[tokio::test]
async fn its_death_stops_the_backend() {
    let (house, backend) = House::chat_only(ChatScript::new()).await;
    let mut running = codex(&house, "endless", "hi").start();
    running.end_input();
    backend.reaches("a request", |counts| counts.in_flight() > 0).await;
    drop(running);
    backend.reaches("everything ending", |counts| counts.in_flight() == 0).await;
    assert!(backend.counts().aborted > 0);
}
