//! Gemini CLI as a session: with this server's models, and with a Google of the tests' own, under a key in the
//! project's environment.

use protocol::workspace::TurnOutcome;
use serde_json::json;
use testkit::{ChatScript, MockBackend};

use super::{
    desk::{self, Agent, Desk, has_been_told, thinks_and_is_counted},
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
async fn thinks_with_a_tiny_model_and_is_counted_by_its_own_key() {
    thinks_and_is_counted(GEMINI, &[]).await;
}

#[tokio::test]
async fn answers_at_the_command_line() {
    desk::answers_at_the_command_line(GEMINI).await;
}

/// A script that leaves a note, once it is offered the tool for that.
fn leaves_a_note() -> ChatScript {
    let arguments = json!({"command": "touch note-42"});
    ChatScript::new().calling("run_shell_command", arguments)
}

#[tokio::test]
async fn runs_a_command_that_this_servers_model_asks_for() {
    let (desk, backend) = Desk::chat(GEMINI, leaves_a_note()).await;
    let args = ["--dangerously-skip-permissions"];
    let mut talk = desk.talk_with("gemini", "warren:chat", &args).await;
    let first = talk.answer("the first is clover").await;
    assert!(desk.work().join("note-42").exists(), "{first:?}");
    assert!(first.results(true).len() == 1 && first.usage.output_tokens > 0, "{first:?}");
    talk.answer("the second is grass").await;
    has_been_told(&backend, &["clover", "grass"]).await;
}

#[tokio::test]
async fn asks_over_acp_before_it_runs_what_this_servers_model_asks_for() {
    let (desk, _backend) = Desk::chat(ACP, leaves_a_note()).await;
    let mut talk = desk.talk("warren:chat").await;
    talk.prompt("Leave a note.").await;
    let asked = talk.question().await;
    assert!(!desk.work().join("note-42").exists());
    talk.permits(&asked, true, "").await;
    let turn = talk.ends().await.well();
    assert!(desk.work().join("note-42").exists(), "{turn:?}");
}

#[tokio::test]
async fn an_error_of_this_server_is_told_in_words() {
    let (desk, _backend) = Desk::chat(GEMINI, ChatScript::new()).await;
    let turn = desk.talk("warren:error-400").await.turn("hello").await;
    assert_eq!(turn.outcome, TurnOutcome::Failed, "{turn:?}");
    assert!(turn.error.contains("the backend says 400"), "{turn:?}");
}
