//! Codex as a session: a process for each turn, which cannot ask.

use protocol::workspace::TurnOutcome;
use serde_json::json;
use testkit::ChatScript;

use super::{
    desk::{self, Agent, Desk, has_been_told, thinks_and_is_counted},
    talk::is_text,
};

const CODEX: Agent = Agent { provider: "codex", part: "codex", program: "codex" };

/// Its sandbox needs what a container may not give; this one's home is a test's.
const OPEN: [&str; 1] = ["--dangerously-skip-permissions"];

#[tokio::test]
async fn thinks_with_a_tiny_model_and_is_counted_by_its_own_key() {
    thinks_and_is_counted(CODEX, &[]).await;
}

#[tokio::test]
async fn answers_at_the_command_line() {
    desk::answers_at_the_command_line(CODEX).await;
}

#[tokio::test]
async fn runs_a_command_and_goes_on_with_its_thread() {
    let call = json!({"cmd": "echo hare-$((40 + 2)) >note; cat note"});
    let (desk, backend) = Desk::chat(CODEX, ChatScript::new().calling("exec_command", call)).await;
    let mut talk = desk.talk_with("codex", "warren:chat", &OPEN).await;
    let first = talk.answer("the first is clover").await;
    assert!(first.text.contains("hare-42"), "{first:?}");
    assert!(first.results(true).iter().any(|output| output.contains("hare-42")), "{first:?}");
    assert!(desk.work().join("note").exists());
    let second = talk.answer("the second is grass").await;
    has_been_told(&backend, &["clover", "grass"]).await;
    // Its usage is that of the thread; the usage here is that of the turn.
    let (first, second) = (first.usage, second.usage);
    assert!(second.output_tokens < 2 * first.output_tokens, "{first:?} {second:?}");
}

#[tokio::test]
async fn is_interrupted_and_goes_on() {
    let (desk, backend) = Desk::chat(CODEX, ChatScript::new()).await;
    let mut talk = desk.talk("warren:endless").await;
    for aborts in 1..=2 {
        talk.prompt("Talk for ever.").await;
        backend.reaches("a request", |counts| counts.in_flight() > 0).await;
        talk.interrupt();
        assert_eq!(talk.ends().await.outcome, TurnOutcome::Interrupted);
        backend.aborted(aborts).await;
    }
}

#[tokio::test]
async fn tells_an_error_in_words() {
    let (desk, _backend) = Desk::chat(CODEX, ChatScript::new()).await;
    let turn = desk.talk("warren:error-400").await.turn("hello").await;
    assert_eq!(turn.outcome, TurnOutcome::Failed, "{turn:?}");
    assert_eq!(turn.error, "the backend says 400");
}

#[tokio::test]
async fn reports_to_its_team_by_the_tool_that_it_is_started_with() {
    let report = json!({"result": "the hare is in the clover"});
    let script = ChatScript::new().calling("mcp__team__report", report);
    let (desk, _backend) = Desk::chat(CODEX, script).await;
    let (worker, result) = desk.reports("warren:chat", "Find the hare.", &OPEN).await;
    assert_eq!((&*result.result, result.success), ("the hare is in the clover", true));
    assert!(desk.booked(worker).await.requests > 0);
}

#[tokio::test]
async fn thoughts_are_not_part_of_the_answer() {
    let (desk, _backend) = Desk::chat(CODEX, ChatScript::new()).await;
    let turn = desk.talk("warren:reasoning").await.answer("hello").await;
    assert!(turn.text.contains("You said:") && !turn.text.contains("Let me think"), "{turn:?}");
    assert!(turn.events.iter().any(is_text), "{turn:?}");
}
