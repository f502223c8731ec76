//! Interrupts, and agents that hang, crash, print garbage, or never end.

use std::time::Duration;

use protocol::workspace::{AgentEvent, TurnOutcome};

use super::rig::{Rig, create, gone, open, prompt};

#[tokio::test]
async fn an_interrupt_ends_a_turn_and_the_conversation_goes_on() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["claude", "codex", "gemini", "opencode", "own"] {
        let mut seen = open(&workspace, &rig, provider).await;
        prompt(&workspace, seen.id, "say I work; wait").unwrap();
        seen.until(|event| matches!(event, AgentEvent::Text { .. })).await;
        workspace.sessions.interrupt(seen.id).unwrap();
        assert_eq!(seen.end().await.outcome, TurnOutcome::Interrupted, "{provider}");
        let heard = seen.answer(&workspace, "recall").await;
        assert_eq!(heard, "say I work; wait", "{provider}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_second_interrupt_ends_at_once_what_does_not_listen() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    prompt(&workspace, seen.id, "pid; hang").unwrap();
    seen.until(|event| matches!(event, AgentEvent::Text { .. })).await;
    workspace.sessions.interrupt(seen.id).unwrap();
    workspace.sessions.interrupt(seen.id).unwrap();
    assert_eq!(seen.end().await.outcome, TurnOutcome::Interrupted);
    assert_eq!(seen.answer(&workspace, "say I am back").await, "I am back");
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_agent_that_falls_silent_has_failed_and_the_next_turn_has_a_new_process() {
    let mut rig = Rig::new();
    rig.site.settings.agents.silence = Duration::from_millis(1500);
    let workspace = rig.site.start().await;
    for provider in ["claude", "codex"] {
        let mut seen = open(&workspace, &rig, provider).await;
        let pid = seen.answer(&workspace, "pid").await;
        let ended = seen.turn(&workspace, "hang").await;
        assert_eq!(ended.outcome, TurnOutcome::Failed);
        assert!(ended.error.as_deref().unwrap().contains("said nothing"), "{ended:?}");
        assert_ne!(seen.answer(&workspace, "pid").await, pid, "{provider}");
        gone(&pid).await;
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_crash_fails_the_turn_with_what_was_complained_and_the_next_one_works() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["claude", "codex", "gemini", "opencode", "own"] {
        let mut seen = open(&workspace, &rig, provider).await;
        seen.answer(&workspace, "say one").await;
        let ended = seen.turn(&workspace, "crash").await;
        assert_eq!(ended.outcome, TurnOutcome::Failed, "{provider}");
        let error = ended.error.unwrap();
        assert!(error.contains("told to crash"), "{provider}: {error}");
        assert_eq!(seen.answer(&workspace, "say two").await, "two", "{provider}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn garbage_and_lines_without_end_harm_nothing() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["claude", "codex", "gemini", "opencode", "own"] {
        let mut seen = open(&workspace, &rig, provider).await;
        let text = seen.answer(&workspace, "garbage; flood; say fine").await;
        assert_eq!(text, "fine", "{provider}");
        let notices = seen.notices().join("\n");
        assert!(notices.contains("Segmentation fault"), "{provider}: {notices}");
        assert!(notices.contains("was cut"), "{provider}: {notices}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_agent_that_does_not_end_after_its_turn_is_ended() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["codex", "opencode"] {
        let mut seen = open(&workspace, &rig, provider).await;
        let pid = seen.answer(&workspace, "never exit; pid").await;
        assert_ne!(seen.answer(&workspace, "pid").await, pid, "{provider}");
        gone(&pid).await;
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_agent_that_will_not_end_is_killed_with_its_session() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    let pid = seen.answer(&workspace, "never exit; pid").await;
    workspace.sessions.kill(seen.id).await.unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    workspace.shut_down().await;
}

#[tokio::test]
async fn background_processes_end_with_their_agent() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["codex", "claude"] {
        let mut seen = open(&workspace, &rig, provider).await;
        let pid = seen.answer(&workspace, "daemonise").await;
        if provider == "claude" {
            workspace.sessions.kill(seen.id).await.unwrap();
        } else {
            assert_eq!(seen.answer(&workspace, "say on").await, "on");
        }
        gone(&pid).await;
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_session_that_was_not_prompted_is_killed_without_ado() {
    let (rig, workspace) = Rig::start().await;
    let id = create(&workspace, rig.new_session("codex")).await.unwrap();
    workspace.sessions.kill(id).await.unwrap();
    assert!(prompt(&workspace, id, "say x").is_err());
    workspace.shut_down().await;
}
