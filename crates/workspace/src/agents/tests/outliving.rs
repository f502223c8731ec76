//! Agents outlive a workspace: the next one goes on in the middle of a turn.

use std::time::Duration;

use tokio::runtime::Runtime;

use super::{
    asking::allow,
    rig::{Rig, Watcher, open, prompt},
};
use crate::Workspace;

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.site.settings.keep_sessions = Duration::from_secs(600);
    rig
}

async fn next(rig: &Rig, workspace: Workspace) -> Workspace {
    workspace.release().await;
    drop(workspace);
    rig.site.start().await
}

#[tokio::test]
async fn a_turn_goes_on_and_what_waits_behind_it_follows() {
    let rig = rig();
    let mut workspace = rig.site.start().await;
    for provider in ["claude", "codex", "gemini", "opencode", "gemini-acp", "own"] {
        let mut seen = open(&workspace, &rig, provider).await;
        let id = seen.id;
        seen.ready().await;
        prompt(&workspace, id, "say before; slow 600; say after").unwrap();
        prompt(&workspace, id, "recall").unwrap();
        seen.until_shown("before").await;
        workspace = next(&rig, workspace).await;
        // Turns may have ended before it is attached: only the last is certain to be seen.
        let mut seen = Watcher::attach(&workspace, id);
        seen.until_shown("after").await;
        prompt(&workspace, id, "recall").unwrap();
        let mut last = seen.end().await;
        while last.turn < 3 {
            last = seen.end().await;
        }
        assert_eq!(last.error, None, "{provider}");
        assert!(
            last.text.unwrap().contains("say before"),
            "{provider} goes on in its conversation"
        );
        assert!(seen.notices().is_empty(), "{provider}: {:?}", seen.notices());
        let lines = seen.text.matches("before").count();
        assert!(lines > 0, "{provider}: its history is there");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_question_stays_open_under_its_id_and_its_answer_arrives() {
    let rig = rig();
    let mut workspace = rig.site.start().await;
    for provider in ["claude", "gemini-acp", "own"] {
        let mut seen = open(&workspace, &rig, provider).await;
        prompt(&workspace, seen.id, "ask Bash").unwrap();
        let question = seen.question().await;
        workspace = next(&rig, workspace).await;
        let mut second = Watcher::attach(&workspace, seen.id);
        assert_eq!(second.question().await, question, "{provider}");
        workspace.sessions.permit(seen.id, allow(&question)).unwrap();
        assert_eq!(second.end().await.text.as_deref(), Some("Bash was allowed"), "{provider}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_idle_process_stays_and_takes_the_next_prompt() {
    let rig = rig();
    let workspace = rig.site.start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    let pid = seen.answer(&workspace, "pid").await;
    let workspace = next(&rig, workspace).await;
    let mut second = Watcher::attach(&workspace, seen.id);
    assert_eq!(second.answer(&workspace, "pid").await, pid);
    workspace.shut_down().await;
}

/// Each line of the agent's output is there once, wherever the kill was.
#[test]
fn a_turn_survives_kills_of_its_workspace_and_no_line_is_lost_or_doubled() {
    let rig = rig();
    let mut id = None;
    for round in 0..4 {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async {
            let workspace = rig.site.start().await;
            let mut seen = match id {
                None => open(&workspace, &rig, "claude").await,
                Some(id) => Watcher::attach(&workspace, id),
            };
            id = Some(seen.id);
            if round == 0 {
                let many: Vec<String> =
                    (0..40).map(|number| format!("say number-{number}-; slow 30")).collect();
                prompt(&workspace, seen.id, &many.join("; ")).unwrap();
            }
            seen.until_shown(&format!("number-{}-", 3 + 8 * round)).await;
            workspace.sessions.seem_killed().await;
            std::mem::forget(workspace);
        });
        runtime.shutdown_background();
    }
    Runtime::new().unwrap().block_on(async {
        let workspace = rig.site.start().await;
        let id = id.unwrap();
        let mut seen = Watcher::attach(&workspace, id);
        assert!(seen.end().await.text.unwrap().contains("number-39-"));
        let past = workspace.sessions.history(id, u64::MAX, 4 << 20).await.unwrap();
        let whole = past.data.lines().filter(|line| line.contains("\"type\":\"assistant\""));
        let said: Vec<String> = whole
            .filter_map(|line| Some(line.split("number-").nth(1)?.split('-').next()?.to_owned()))
            .collect();
        assert_eq!(said, (0..40).map(|number| number.to_string()).collect::<Vec<_>>());
        workspace.shut_down().await;
    });
}

#[test]
fn an_agent_whose_state_is_not_known_begins_anew_and_says_why() {
    let rig = rig();
    let runtime = Runtime::new().unwrap();
    let id = runtime.block_on(async {
        let workspace = rig.site.start().await;
        let mut seen = open(&workspace, &rig, "claude").await;
        seen.answer(&workspace, "say one").await;
        // As if another turn had begun, of which the process does not know.
        workspace.sessions.store_turn(seen.id, 7);
        workspace.sessions.seem_killed().await;
        std::mem::forget(workspace);
        seen.id
    });
    runtime.shutdown_background();
    Runtime::new().unwrap().block_on(async {
        let workspace = rig.site.start().await;
        let mut seen = Watcher::attach(&workspace, id);
        let ended = seen.turn(&workspace, "recall").await;
        assert!(ended.turn == 8 && ended.text.unwrap().contains("say one"));
        workspace.shut_down().await;
    });
}
