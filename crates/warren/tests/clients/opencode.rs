//! opencode of npm: it speaks Chat Completions, streamed, with tools; nothing is translated.

use serde_json::json;
use testkit::ChatScript;

use crate::{
    house::{House, KEY},
    program::{Program, installed},
};

fn opencode(house: &House, model: &str, prompt: &str) -> Program {
    let program = Program::new(installed("opencode").join("node_modules/.bin/opencode"));
    let options = json!({"baseURL": format!("{}/v1", house.daemon.url()), "apiKey": KEY});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Warren", "options": options,
        "models": {model: {}},
    });
    let config = json!({
        "provider": {"warren": provider}, "model": format!("warren/{model}"), "autoupdate": false,
        "share": "disabled", "permission": {"bash": "allow"},
    });
    program.file("work/opencode.json", &config.to_string());
    program.args(["run", prompt])
}

#[tokio::test]
async fn calls_a_tool() {
    let call = json!({"command": "echo hare-$((40 + 2))", "description": "Count"});
    let (house, _backend) = House::chat_only(ChatScript::new().calling("bash", call)).await;
    let log = opencode(&house, "chat", "What does the note say?").run().await.well();
    let told = log.split("The tools said:").nth(1).unwrap_or_else(|| panic!("{log}"));
    assert!(told.contains("hare-42"), "{log}");
}

#[tokio::test]
async fn tells_an_error_in_words() {
    let (house, _backend) = House::chat_only(ChatScript::new()).await;
    let ended = opencode(&house, "error-400", "hi").run().await;
    assert!(ended.log.contains("the backend says 400"), "{}", ended.log);
}
