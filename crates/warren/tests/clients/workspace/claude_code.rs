//! Claude Code as a session: a process that stays, asks for permission, and uses its team's tools.

use protocol::workspace::{AgentEvent, SessionMode, TurnOutcome, client::NewSession};
use serde_json::json;
use testkit::{ChatScript, eventually};

use super::{
    desk::{self, Agent, Desk, has_been_told, thinks_and_is_counted},
    talk::is_text,
};
use crate::program::DEADLINE;

const CLAUDE: Agent = Agent { provider: "claude", part: "claude-code", program: "claude" };

/// A command that it may not run unasked, and that leaves something behind.
fn command() -> ChatScript {
    let call = json!({"command": "touch note-$((40 + 2))", "description": "Leave a note"});
    ChatScript::new().calling("Bash", call)
}

#[tokio::test]
async fn thinks_with_a_tiny_model_and_is_counted_by_its_own_key() {
    // To this model a letter is a token: with all tools the prompt is too long for it.
    thinks_and_is_counted(CLAUDE, &["--tools=Read"]).await;
}

#[tokio::test]
async fn answers_at_the_command_line() {
    desk::answers_at_the_command_line(CLAUDE).await;
}

/// Within a process, and in the next one, which is started after the server was killed.
#[tokio::test]
async fn goes_on_with_its_conversation_also_after_the_server_was_killed() {
    let (mut desk, backend) = Desk::chat(CLAUDE, ChatScript::new()).await;
    let mut talk = desk.talk("warren:chat").await;
    let turn = talk.answer("the first is clover").await;
    assert!(turn.text.contains("clover"), "{turn:?}");
    assert!(turn.events.iter().any(is_text), "{turn:?}");
    talk.answer("the second is grass").await;
    has_been_told(&backend, &["clover", "grass"]).await;
    // It writes its conversation down a moment later than it says that a turn is over.
    eventually("the conversation being kept", DEADLINE, async || desk.keeps("grass")).await;
    let id = talk.id;
    drop(talk);
    desk.restart_server("chat").await;
    let mut talk = desk.again(id).await;
    talk.answer("the third is hay").await;
    has_been_told(&backend, &["clover", "grass", "hay"]).await;
}

#[tokio::test]
async fn asks_before_it_runs_a_command_and_does_as_it_is_told() {
    let (desk, _backend) = Desk::chat(CLAUDE, command()).await;
    let note = desk.work().join("note-42");

    let mut talk = desk.talk("warren:chat").await;
    talk.prompt("Leave a note.").await;
    let asked = talk.question().await;
    assert_eq!((&*asked.tool, &asked.input["command"]), ("Bash", &json!("touch note-$((40 + 2))")));
    assert!(!note.exists(), "nobody has allowed it yet");
    talk.permits(&asked, false, "not in this burrow").await;
    let turn = talk.ends().await.well();
    assert!(turn.text.contains("not in this burrow"), "the model is told why: {turn:?}");
    assert_eq!(turn.results(false).len(), 1, "{turn:?}");
    assert!(!note.exists());
    drop(talk);

    let mut talk = desk.talk("warren:chat").await;
    talk.prompt("Leave a note.").await;
    let asked = talk.question().await;
    talk.permits(&asked, true, "").await;
    let turn = talk.ends().await.well();
    assert_eq!(turn.results(true).len(), 1, "{turn:?}");
    assert!(note.exists());
}

#[tokio::test]
async fn is_interrupted_in_the_middle_of_an_answer_and_goes_on() {
    let (desk, backend) = Desk::chat(CLAUDE, ChatScript::new()).await;
    let mut talk = desk.talk("warren:endless").await;
    for aborts in 1..=2 {
        talk.prompt("Talk for ever.").await;
        talk.until(is_text).await;
        talk.interrupt();
        assert_eq!(talk.ends().await.outcome, TurnOutcome::Interrupted);
        backend.aborted(aborts).await;
    }
}

#[tokio::test]
async fn is_interrupted_while_it_waits_for_leave() {
    let (desk, _backend) = Desk::chat(CLAUDE, command()).await;
    let mut talk = desk.talk("warren:chat").await;
    talk.prompt("Leave a note.").await;
    talk.question().await;
    talk.interrupt();
    assert_eq!(talk.ends().await.outcome, TurnOutcome::Interrupted);
    assert!(!desk.work().join("note-42").exists());
}

#[tokio::test]
async fn tells_an_error_in_words() {
    let (desk, _backend) = Desk::chat(CLAUDE, ChatScript::new()).await;
    let turn = desk.talk("warren:error-400").await.turn("hello").await;
    assert_eq!(turn.outcome, TurnOutcome::Failed, "{turn:?}");
    assert!(turn.error.contains("the backend says 400"), "{turn:?}");
}

/// It tries for minutes, and reports that meanwhile.
#[tokio::test]
async fn tells_that_it_tries_again() {
    let (desk, _backend) = Desk::chat(CLAUDE, ChatScript::new()).await;
    let mut talk = desk.talk("warren:error-500").await;
    talk.prompt("hello").await;
    talk.until(|event| match event {
        AgentEvent::Notice { message } => message.contains("attempt 1 of"),
        _ => false,
    })
    .await;
    talk.interrupt();
    assert_eq!(talk.ends().await.outcome, TurnOutcome::Interrupted);
}

/// Without the question whether the key may be used, which each session would ask again.
#[tokio::test]
async fn takes_a_prompt_in_its_own_terminal() {
    let (desk, backend) = Desk::chat(CLAUDE, ChatScript::new()).await;
    let trusted = json!({desk.work().to_str().unwrap(): {"hasTrustDialogAccepted": true}});
    let known = json!({"hasCompletedOnboarding": true, "theme": "dark", "projects": trusted});
    desk.file(".claude.json", &known.to_string());
    let new = NewSession { mode: SessionMode::Pty, ..desk.asked("claude", "warren:chat", &[]) };
    let id = desk.client().await.new_session(new).await.unwrap().id;
    let session = id.to_string();
    let is_ready =
        async || desk.runs(&["session", "history"], &[&session]).await.contains("shortcuts");
    eventually("its own prompt", DEADLINE, is_ready).await;
    desk.runs(&["session", "send"], &[&session, "What is in the clover?"]).await;
    has_been_told(&backend, &["What is in the clover?"]).await;
    assert!(desk.booked(id).await.requests > 0);
}

#[tokio::test]
async fn reports_to_its_team_by_the_tool_that_it_is_started_with() {
    let report = json!({"result": "the hare is in the clover"});
    let script = ChatScript::new().calling("mcp__team__report", report);
    let (desk, _backend) = Desk::chat(CLAUDE, script).await;
    let (worker, result) = desk.reports("warren:chat", "Find the hare.", &[]).await;
    assert_eq!((&*result.result, result.success), ("the hare is in the clover", true));
    assert!(desk.booked(worker).await.requests > 0);
}
