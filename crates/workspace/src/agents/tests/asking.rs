//! Questions: allowed, refused, expired, over a disconnect.

use std::time::Duration;

use protocol::workspace::{
    ServerMessage,
    client::{PermissionOutcome, PermissionRequest},
};

use super::rig::{Rig, Watcher, open, prompt};
use crate::engine::PermissionAnswer;

/// The providers that can ask.
const ASKING: [&str; 3] = ["claude", "gemini-acp", "own"];

pub(super) fn allow(question: &PermissionRequest) -> PermissionAnswer {
    let request_id = question.request_id.to_string();
    PermissionAnswer { request_id, allow: true, message: None }
}

fn deny(question: &PermissionRequest, why: &str) -> PermissionAnswer {
    PermissionAnswer { allow: false, message: Some(why.to_owned()), ..allow(question) }
}

async fn outcome(seen: &mut Watcher, of: &PermissionRequest) -> PermissionOutcome {
    seen.until_message(|message| match message {
        ServerMessage::PermissionResolved(end) if end.request_id == of.request_id => {
            Some(end.outcome)
        }
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_question_is_shown_to_later_viewers_until_it_is_answered() {
    let (rig, workspace) = Rig::start().await;
    let mut first = open(&workspace, &rig, "claude").await;
    let id = first.id;
    prompt(&workspace, id, "ask Bash").unwrap();
    let question = first.question().await;
    let asks = || workspace.sessions.info(id).unwrap().asks;
    assert_eq!(asks(), 1);
    drop(first);
    let mut second = Watcher::attach(&workspace, id);
    assert_eq!(second.question().await, question);
    workspace.sessions.permit(id, allow(&question)).unwrap();
    assert_eq!(second.end().await.text.as_deref(), Some("Bash was allowed"));
    drop(second);
    let mut third = Watcher::attach(&workspace, id);
    third.answer(&workspace, "say on").await;
    let is_question =
        |message: &ServerMessage| matches!(message, ServerMessage::PermissionRequest(_));
    assert!(!third.messages.iter().any(is_question), "it is answered");
    assert_eq!(asks(), 0);
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_allowed_tool_runs_and_a_refused_one_does_not() {
    let (rig, workspace) = Rig::start().await;
    for provider in ASKING {
        let mut seen = open(&workspace, &rig, provider).await;
        prompt(&workspace, seen.id, "ask Bash").unwrap();
        let question = seen.question().await;
        assert_eq!((question.session_id, question.tool.as_str()), (seen.id, "Bash"));
        assert_eq!(question.input["command"], "ls");
        workspace.sessions.permit(seen.id, allow(&question)).unwrap();
        assert_eq!(seen.end().await.text.as_deref(), Some("Bash was allowed"), "{provider}");
        assert_eq!(outcome(&mut seen, &question).await, PermissionOutcome::Allow);
        let twice = workspace.sessions.permit(seen.id, allow(&question)).unwrap_err();
        assert!(twice.to_string().contains("nobody asks"), "{twice}");

        seen.messages.clear();
        prompt(&workspace, seen.id, "ask Edit").unwrap();
        let question = seen.question().await;
        workspace.sessions.permit(seen.id, deny(&question, "not on a Sunday")).unwrap();
        let text = seen.end().await.text.unwrap();
        assert!(text.starts_with("Edit was denied"), "{provider}: {text}");
        assert_eq!(text.contains("not on a Sunday"), provider == "claude", "{provider}: {text}");
        assert_eq!(outcome(&mut seen, &question).await, PermissionOutcome::Deny);
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_question_that_nobody_answers_expires_and_the_turn_goes_on() {
    let mut rig = Rig::new();
    rig.site.settings.agents.permission = Duration::from_millis(200);
    let workspace = rig.site.start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    let text = seen.answer(&workspace, "ask Bash").await;
    assert!(text.contains("Nobody decided in time"), "{text}");
    let question = seen.question().await;
    assert_eq!(outcome(&mut seen, &question).await, PermissionOutcome::Expired);
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_interrupt_answers_what_was_asked() {
    let (rig, workspace) = Rig::start().await;
    for provider in ASKING {
        let mut seen = open(&workspace, &rig, provider).await;
        prompt(&workspace, seen.id, "ask Bash").unwrap();
        let question = seen.question().await;
        workspace.sessions.interrupt(seen.id).unwrap();
        let ended = seen.end().await;
        assert_eq!(ended.outcome, protocol::workspace::TurnOutcome::Interrupted, "{provider}");
        assert_eq!(outcome(&mut seen, &question).await, PermissionOutcome::Expired);
        assert_eq!(seen.answer(&workspace, "say on").await, "on", "{provider}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_agent_with_all_permissions_does_not_ask() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["claude", "own"] {
        let mut new = rig.new_session(provider);
        let crate::sessions::NewEngine::Agent { extra_args, .. } = &mut new.engine else {
            panic!()
        };
        extra_args.push("--dangerously-skip-permissions".to_owned());
        let id = super::rig::create(&workspace, new).await.unwrap();
        let mut seen = Watcher::attach(&workspace, id);
        assert_eq!(seen.answer(&workspace, "ask Bash").await, "Bash was allowed", "{provider}");
    }
    workspace.shut_down().await;
}
