//! Turns of agents of each dialect: the first, later ones, and turns after a restart.

use std::time::{Duration, Instant};

use protocol::workspace::{AgentEvent, SessionStatus, TurnOutcome};

use super::rig::{Rig, Watcher, create, gone, open, prompt};

/// One provider for each dialect and transport.
const ALL: [&str; 7] =
    ["claude", "codex", "gemini", "opencode", "gemini-acp", "opencode-acp", "own"];

#[tokio::test]
async fn an_agent_of_each_dialect_answers_and_goes_on_with_its_conversation() {
    let (rig, workspace) = Rig::start().await;
    for provider in ALL {
        let mut seen = open(&workspace, &rig, provider).await;
        assert_eq!(seen.answer(&workspace, "say hello there").await, "hello there", "{provider}");
        let heard = seen.answer(&workspace, "recall").await;
        assert_eq!(heard, "say hello there", "{provider} has another conversation");
        let turns: Vec<u64> = seen.events.iter().filter_map(started).collect();
        assert_eq!(turns, [1, 2], "{provider}");
        assert!(seen.text.contains("hello"), "{provider}: its own lines are the output");
        let info = workspace.sessions.info(seen.id).unwrap();
        assert_eq!(info.status, SessionStatus::Idle, "{provider}");
        workspace.sessions.kill(seen.id).await.unwrap();
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_conversation_goes_on_after_a_restart_and_turns_are_counted_on() {
    let rig = Rig::new();
    let mut ids = Vec::new();
    let workspace = rig.site.start().await;
    for provider in ALL {
        let mut seen = open(&workspace, &rig, provider).await;
        seen.answer(&workspace, &format!("say I am {provider}")).await;
        ids.push((provider, seen.id));
    }
    let workspace = rig.site.restart(workspace).await;
    for (provider, id) in ids {
        let mut seen = Watcher::attach(&workspace, id);
        let info = workspace.sessions.info(id).unwrap();
        assert_eq!(info.status, SessionStatus::Idle, "{provider}");
        let ended = seen.turn(&workspace, "recall").await;
        let expected = format!("say I am {provider}");
        assert_eq!((ended.turn, ended.text), (2, Some(expected)), "{:?}", ended.error);
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_conversation_that_is_lost_is_begun_anew_and_that_is_said() {
    let (rig, workspace) = Rig::start().await;
    for provider in ["codex", "gemini", "opencode"] {
        let mut seen = open(&workspace, &rig, provider).await;
        seen.answer(&workspace, "say one").await;
        std::fs::remove_dir_all(rig.agents.state()).unwrap();
        assert_eq!(seen.answer(&workspace, "recall; say two").await, "two", "{provider}");
        assert!(seen.notices().iter().any(|it| it.contains("a new one begins")), "{provider}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_warm_agent_keeps_its_process_until_it_was_idle_for_long() {
    let mut rig = Rig::new();
    rig.site.settings.agents.idle = Duration::from_millis(300);
    let workspace = rig.site.start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    let first = seen.answer(&workspace, "pid").await;
    assert_eq!(seen.answer(&workspace, "pid").await, first);
    gone(&first).await;
    assert_ne!(seen.answer(&workspace, "pid").await, first);
    assert_eq!(seen.answer(&workspace, "recall").await, "pid | pid | pid");
    workspace.shut_down().await;
}

#[tokio::test]
async fn the_first_event_of_a_warm_agent_comes_at_once() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    seen.answer(&workspace, "say warm").await;
    let mut best = Duration::MAX;
    for turn in 2..7 {
        let started = Instant::now();
        prompt(&workspace, seen.id, "say on").unwrap();
        seen.until(|event| matches!(event, AgentEvent::Text { text, .. } if text == "o")).await;
        best = best.min(started.elapsed());
        assert_eq!(seen.end().await.turn, turn);
        seen.forget();
    }
    assert!(best < Duration::from_millis(50), "{best:?}");
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_turn_that_nobody_asked_for_is_shown_and_answers_nobody() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    assert_eq!(
        seen.answer(&workspace, "background the task is done; say started").await,
        "started"
    );
    let is_unasked = |event: &AgentEvent| matches!(event, AgentEvent::Text { unasked: true, .. });
    seen.until(is_unasked).await;
    assert_eq!(workspace.sessions.info(seen.id).unwrap().status, SessionStatus::Idle);
    assert_eq!(seen.answer(&workspace, "say four").await, "four");
    assert_eq!(seen.answer(&workspace, "say six").await, "six");
    let turns: Vec<u64> = seen.events.iter().filter_map(started).collect();
    assert_eq!(turns, [1, 2, 3]);
    let costs =
        [seen.usage(1).await, seen.usage(2).await, seen.usage(3).await].map(|it| it.cost_usd);
    assert_eq!(costs, [Some(0.25), Some(0.5), Some(0.25)]);
    assert!(seen.text.contains("the task is done"));
    workspace.shut_down().await;
}

#[tokio::test]
async fn prompts_wait_in_order_and_only_so_many() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    prompt(&workspace, seen.id, "ask Bash; say 0").unwrap();
    let question = seen.question().await;
    for number in 1..=32 {
        prompt(&workspace, seen.id, &format!("say {number}")).unwrap();
    }
    let refused = prompt(&workspace, seen.id, "say 33").unwrap_err().to_string();
    assert!(refused.contains("32 prompts wait already"), "{refused}");
    workspace.sessions.permit(seen.id, super::asking::allow(&question)).unwrap();
    for number in 0..=32 {
        let ended = seen.end().await;
        assert_eq!((ended.turn, ended.text), (number + 1, Some(number.to_string())));
    }
    prompt(&workspace, seen.id, "say 33").unwrap();
    assert_eq!(seen.end().await.text.as_deref(), Some("33"));
    workspace.shut_down().await;
}

#[tokio::test]
async fn usage_is_reported_for_each_turn_alone() {
    let (rig, workspace) = Rig::start().await;
    for (provider, input, output, cost) in [
        ("claude", 60, 7, Some(0.25)),
        ("codex", 100, 10, None),
        ("gemini", 30, 3, None),
        ("opencode", 50, 5, Some(0.5)),
    ] {
        let mut seen = open(&workspace, &rig, provider).await;
        for turn in 1..=2 {
            seen.answer(&workspace, "say x").await;
            let usage = seen.usage(turn).await;
            assert_eq!((usage.input_tokens, usage.output_tokens), (input, output), "{provider}");
            assert_eq!(usage.cost_usd, cost, "{provider}");
        }
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn prompts_that_wait_have_their_turns_after_the_next_start_in_order_and_once() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "claude").await;
    seen.answer(&workspace, "say the first").await;
    let sessions = &workspace.sessions;
    for (text, input) in [("wait", "1"), ("say the second", "2"), ("say the third", "3")] {
        assert!(sessions.prompt(seen.id, None, text.into(), Some(input)).unwrap().is_new);
    }
    sessions.prompts_stored(seen.id).expect("an agent").await;
    seen.until(|event| matches!(event, AgentEvent::TurnStarted { turn: 2, .. })).await;
    let workspace = rig.site.restart(workspace).await;
    let sessions = &workspace.sessions;
    for (text, input) in [("wait", "1"), ("say the third", "3")] {
        let second = sessions.prompt(seen.id, None, text.into(), Some(input));
        assert!(!second.unwrap().is_new, "it was taken before");
    }
    sessions.go_on();
    let mut seen = Watcher::attach(&workspace, seen.id);
    for (turn, text) in [(3, "the second"), (4, "the third")] {
        let ended = seen.end().await;
        assert_eq!((ended.turn, ended.text.as_deref()), (turn, Some(text)));
    }
    let recalled = seen.answer(&workspace, "recall").await;
    assert_eq!(recalled, "say the first | wait | say the second | say the third");
    let workspace = rig.site.restart(workspace).await;
    workspace.sessions.go_on();
    let mut seen = Watcher::attach(&workspace, seen.id);
    assert_eq!(seen.turn(&workspace, "say x").await.turn, 6, "nothing waits any more");
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_threads_usage_before_a_restart_is_not_reported_again() {
    let (rig, workspace) = Rig::start().await;
    let mut seen = open(&workspace, &rig, "codex").await;
    let id = seen.id;
    seen.answer(&workspace, "say one").await;
    seen.usage(1).await;
    let workspace = rig.site.restart(workspace).await;
    let mut seen = Watcher::attach(&workspace, id);
    seen.answer(&workspace, "say two").await;
    let usage = seen.usage(2).await;
    assert_eq!((usage.input_tokens, usage.output_tokens), (100, 10));
    workspace.shut_down().await;
}

#[tokio::test]
async fn uses_of_tools_are_told_beside_the_lines_that_say_them() {
    let (rig, workspace) = Rig::start().await;
    for provider in ALL {
        let mut seen = open(&workspace, &rig, provider).await;
        assert_eq!(seen.answer(&workspace, "use Bash; say done").await, "done", "{provider}");
        let used = seen.events.iter().find_map(|event| match event {
            AgentEvent::ToolStarted { id, .. } => Some(id.clone()),
            _ => None,
        });
        let used = used.expect(provider);
        assert!(seen.events.iter().any(|event| matches!(event,
            AgentEvent::ToolFinished { id, ok: true, output } if *id == used && output == "a b")));
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn prompts_that_are_none_and_keys_are_refused_in_words() {
    let (rig, workspace) = Rig::start().await;
    let id = create(&workspace, rig.new_session("claude")).await.unwrap();
    assert!(prompt(&workspace, id, " \n ").unwrap_err().to_string().contains("empty"));
    let long = "x".repeat(session::agent::MAX_PROMPT + 1);
    assert!(prompt(&workspace, id, &long).unwrap_err().to_string().contains("bytes"));
    let typed = workspace.sessions.type_in(id, crate::identity::ClientId(1), "x".into(), None);
    assert!(typed.unwrap_err().to_string().contains("send_input"));
    assert!(workspace.sessions.interrupt(id).unwrap_err().to_string().contains("no turn"));
    let mut seen = Watcher::attach(&workspace, id);
    assert_eq!(seen.turn(&workspace, "say fine").await.outcome, TurnOutcome::Completed);
    workspace.shut_down().await;
}

fn started(event: &AgentEvent) -> Option<u64> {
    match event {
        AgentEvent::TurnStarted { turn, .. } => Some(*turn),
        _ => None,
    }
}
