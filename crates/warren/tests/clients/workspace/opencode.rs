//! opencode as a session: a process for each turn; over ACP one that stays, and asks.

use protocol::workspace::TurnOutcome;
use serde_json::{Value, json};
use testkit::ChatScript;

use super::{
    desk::{self, Agent, Desk, has_been_told, thinks_and_is_counted},
    talk::is_text,
};

const OPENCODE: Agent = Agent { provider: "opencode", part: "opencode", program: "opencode" };

/// The same program over ACP.
const ACP: Agent = Agent { provider: "opencode-acp", ..OPENCODE };

fn command(command: &str) -> ChatScript {
    ChatScript::new().calling("bash", json!({"command": command, "description": "Leave a note"}))
}

/// Sets the permissions that it has unasked, by its own settings.
fn permission(desk: &Desk, rules: &Value) {
    desk.file("work/opencode.json", &json!({ "permission": rules }).to_string());
}

#[tokio::test]
async fn thinks_with_a_tiny_model_and_is_counted_by_its_own_key() {
    thinks_and_is_counted(OPENCODE, &[]).await;
}

#[tokio::test]
async fn answers_at_the_command_line() {
    desk::answers_at_the_command_line(OPENCODE).await;
}

#[tokio::test]
async fn runs_a_command_and_goes_on_with_its_conversation() {
    let (desk, backend) = Desk::chat(OPENCODE, command("echo hare-$((40 + 2))")).await;
    let mut talk = desk.talk("warren:chat").await;
    let first = talk.answer("the first is clover").await;
    assert!(first.text.contains("hare-42"), "{first:?}");
    assert!(first.results(true).iter().any(|output| output.contains("hare-42")), "{first:?}");
    assert!(first.usage.output_tokens > 0, "{first:?}");
    talk.answer("the second is grass").await;
    has_been_told(&backend, &["clover", "grass"]).await;
}

/// It cannot ask in this mode: what it would have to ask for it refuses itself.
#[tokio::test]
async fn refuses_itself_what_it_would_have_to_ask_for() {
    let (desk, _backend) = Desk::chat(OPENCODE, command("touch note-42")).await;
    permission(&desk, &json!({"bash": "ask"}));
    let turn = desk.talk("warren:chat").await.turn("Leave a note.").await;
    assert!(!desk.work().join("note-42").exists(), "{turn:?}");
    assert_eq!(turn.outcome, TurnOutcome::Failed, "{turn:?}");
    assert!(turn.error.contains("refused itself a permission"), "{turn:?}");
}

#[tokio::test]
async fn is_interrupted() {
    let (desk, backend) = Desk::chat(OPENCODE, ChatScript::new()).await;
    let mut talk = desk.talk("warren:endless").await;
    talk.prompt("Talk for ever.").await;
    backend.reaches("a request", |counts| counts.in_flight() > 0).await;
    talk.interrupt();
    assert_eq!(talk.ends().await.outcome, TurnOutcome::Interrupted);
    backend.aborted(1).await;
}

#[tokio::test]
async fn tells_an_error_in_words() {
    let (desk, _backend) = Desk::chat(OPENCODE, ChatScript::new()).await;
    let turn = desk.talk("warren:error-400").await.turn("hello").await;
    assert_eq!(turn.outcome, TurnOutcome::Failed, "{turn:?}");
    assert!(turn.error.contains("the backend says 400"), "{turn:?}");
}

#[tokio::test]
async fn reports_to_its_team_by_the_tool_that_it_is_started_with() {
    let report = json!({"result": "the hare is in the clover"});
    let script = ChatScript::new().calling("team_report", report);
    let (desk, _backend) = Desk::chat(OPENCODE, script).await;
    let (worker, result) = desk.reports("warren:chat", "Find the hare.", &[]).await;
    assert_eq!((&*result.result, result.success), ("the hare is in the clover", true));
    assert!(desk.booked(worker).await.requests > 0);
}

#[tokio::test]
async fn asks_over_acp_before_it_runs_a_command() {
    let (desk, backend) = Desk::chat(ACP, command("touch note-42")).await;
    permission(&desk, &json!({"bash": "ask"}));
    let mut talk = desk.talk("warren:chat").await;
    let note = desk.work().join("note-42");

    talk.prompt("Leave a clover note.").await;
    let asked = talk.question().await;
    assert!(asked.input.to_string().contains("touch note-42"), "{asked:?}");
    talk.permits(&asked, false, "").await;
    let turn = talk.ends().await;
    assert!(!note.exists(), "{turn:?}");

    talk.prompt("Leave a grass note.").await;
    let asked = talk.question().await;
    talk.permits(&asked, true, "").await;
    let turn = talk.ends().await.well();
    assert!(note.exists(), "{turn:?}");
    assert!(turn.events.iter().any(is_text), "{turn:?}");
    has_been_told(&backend, &["clover", "grass"]).await;
}

#[tokio::test]
async fn goes_on_over_acp_after_the_server_was_killed_and_is_interrupted() {
    let (mut desk, backend) = Desk::chat(ACP, ChatScript::new()).await;
    let mut talk = desk.talk("warren:chat").await;
    talk.answer("the first is clover").await;
    let id = talk.id;
    drop(talk);
    desk.restart_server("chat").await;
    let mut talk = desk.again(id).await;
    talk.answer("the second is grass").await;
    has_been_told(&backend, &["clover", "grass"]).await;
    drop(talk);
    let mut talk = desk.talk("warren:endless").await;
    talk.prompt("Talk for ever.").await;
    talk.until(is_text).await;
    talk.interrupt();
    assert_eq!(talk.ends().await.outcome, TurnOutcome::Interrupted);
    backend.aborted(1).await;
}
