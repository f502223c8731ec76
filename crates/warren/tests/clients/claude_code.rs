//! Claude Code of npm: it speaks Messages, streamed, with two dozen tools.

use serde_json::json;
use testkit::ChatScript;

use crate::{
    house::{House, KEY},
    program::{Program, installed},
};

/// The secret that only a tool can have found out.
const SECRET: &str = "clover-4711";

fn claude(house: &House, model: &str, prompt: &str) -> Program {
    let binary = installed("claude-code").join("node_modules/.bin/claude");
    let program = Program::new(binary)
        .env("ANTHROPIC_BASE_URL", house.daemon.url())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1");
    program.args(["--print", prompt, "--model", model, "--allowedTools", "Read", "Bash"])
}

/// Two tools at once, one of which reads a file, and the answer that tells their results.
#[tokio::test]
async fn calls_tools() {
    let note = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(note.path(), SECRET).unwrap();
    let script = ChatScript::new()
        .calling("Read", json!({"file_path": note.path()}))
        .calling("Bash", json!({"command": "echo hare-$((40 + 2))", "description": "Count"}));
    let (house, backend) = House::chat_only(script).await;
    let log = claude(&house, "chat", "What does the note say?").run().await.well();
    assert!(log.contains("The tools said:"), "{log}");
    assert!(log.contains(SECRET) && log.contains("hare-42"), "{log}");
    assert_eq!(backend.request().await.target, "/v1/chat/completions");
}

#[tokio::test]
async fn prints_its_stream_of_events() {
    let (house, _backend) = House::chat_only(ChatScript::new()).await;
    let program = claude(&house, "reasoning", "hi").args([
        "--output-format",
        "stream-json",
        "--include-partial-messages",
        "--verbose",
    ]);
    let log = program.run().await.well();
    assert!(log.contains(r#""type":"thinking_delta""#), "{log}");
    assert!(log.contains(r#""type":"message_stop""#), "{log}");
}

#[tokio::test]
async fn tells_an_error_in_words() {
    let (house, _backend) = House::chat_only(ChatScript::new()).await;
    let ended = claude(&house, "error-400", "hi").run().await;
    assert_ne!(ended.code, Some(0));
    assert!(ended.log.contains("the backend says 400"), "{}", ended.log);
}

#[tokio::test]
async fn its_death_stops_the_backend() {
    let (house, backend) = House::chat_only(ChatScript::new()).await;
    let running = claude(&house, "endless", "hi").start();
    backend.reaches("a request", |counts| counts.in_flight() > 0).await;
    drop(running);
    backend.reaches("everything ending", |counts| counts.in_flight() == 0).await;
    assert!(backend.counts().aborted > 0);
}
