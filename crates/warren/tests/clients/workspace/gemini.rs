//! Gemini CLI as a session. It speaks Google's API only, which Warren does not serve: these tests
//! have one of their own, under a key in the project's environment.

use protocol::workspace::TurnOutcome;
use serde_json::json;
use testkit::{ChatScript, MockBackend};

use super::{
    desk::{Agent, Desk, has_been_told},
    google::{self, ANSWER, COMMAND, KEY},
    talk::is_text,
};

const GEMINI: Agent = Agent { provider: "gemini", part: "gemini", program: "gemini" };

/// The same program over ACP.
const ACP: Agent = Agent { provider: "gemini-acp", ..GEMINI };

const MODEL: &str = "gemini-2.5-flash";

/// A desk with a Google of its own.
async fn desk(agent: Agent, key: &str) -> (Desk, MockBackend, MockBackend) {
    let (google, chat) = (google::start().await, ChatScript::new().start().await);
    let url = google.url();
    let env = [("GEMINI_API_KEY", key), ("GOOGLE_GEMINI_BASE_URL", &*url)];
    let desk = Desk::of(agent, (&chat.url(), "chat"), "", &env).await;
    // Away from Google's own address it does not find the key without this.
    let auth = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
    desk.file(".gemini/settings.json", &auth.to_string());
    (desk, google, chat)
}

#[tokio::test]
async fn takes_turns_and_goes_on_with_its_conversation() {
    let (desk, google, _chat) = desk(GEMINI, KEY).await;
    let mut talk = desk.talk(MODEL).await;
    let turn = talk.answer("the first is clover").await;
    assert_eq!(turn.text, ANSWER, "{turn:?}");
    assert!(turn.usage.input_tokens > 0 && turn.usage.output_tokens > 0, "{turn:?}");
    talk.answer("the second is grass").await;
    has_been_told(&google, &["clover", "grass"]).await;
}

#[tokio::test]
async fn runs_a_command_where_it_may_do_everything() {
    let (desk, _google, _chat) = desk(GEMINI, KEY).await;
    let args = ["--dangerously-skip-permissions"];
    let mut talk = desk.talk_with("gemini", MODEL, &args).await;
    let turn = talk.answer("Leave a note.").await;
    assert_eq!(turn.results(true).len(), 1, "{turn:?}");
    assert!(desk.work().join("note-42").exists());
}

#[tokio::test]
async fn a_wrong_key_fails_the_turn_in_words() {
    let (desk, _google, _chat) = desk(GEMINI, "another").await;
    let turn = desk.talk(MODEL).await.turn("hello").await;
    assert_eq!(turn.outcome, TurnOutcome::Failed, "{turn:?}");
    assert!(turn.error.contains("[API Error: API key not valid."), "{turn:?}");
}

#[tokio::test]
async fn asks_over_acp_before_it_runs_a_command() {
    let (desk, google, _chat) = desk(ACP, KEY).await;
    let mut talk = desk.talk(MODEL).await;
    let note = desk.work().join("note-42");

    talk.prompt("Leave a note of clover.").await;
    let asked = talk.question().await;
    assert!(format!("{asked:?}").contains(COMMAND), "{asked:?}");
    talk.permits(&asked, false, "").await;
    let turn = talk.ends().await;
    assert!(!note.exists(), "{turn:?}");

    talk.prompt("Leave a note of grass.").await;
    let asked = talk.question().await;
    talk.permits(&asked, true, "").await;
    let turn = talk.ends().await.well();
    assert!(note.exists() && turn.events.iter().any(is_text), "{turn:?}");
    assert!(turn.results(true).len() == 1 && turn.usage.output_tokens > 0, "{turn:?}");
    has_been_told(&google, &["clover", "grass"]).await;
}

#[tokio::test]
async fn this_servers_models_are_refused_in_words() {
    let (desk, _google, _chat) = desk(GEMINI, KEY).await;
    let refused = desk.client().await.new_session(desk.asked("gemini", "warren:chat", &[])).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("claude, codex, opencode"), "{refused}");
}
