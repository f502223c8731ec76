//! Agents' command lines that are missing, silent, crash, print garbage, or do not end.

use std::{os::unix::fs::PermissionsExt, sync::Arc};

use serde_json::json;
use testkit::{Serve, agents::NAMES, workspace::Mark};
use tokio::task::JoinSet;

use super::{
    kit::{TOKEN, WorkspaceHost, about},
    talk::Agents,
};
use crate::common::binary;

#[tokio::test]
async fn an_agent_that_is_not_installed_is_refused_with_how_to_install_it() {
    // A server that finds nothing in the ways to programs that this machine's user has.
    let dir = tempfile::tempdir().unwrap();
    let wrapper = dir.path().join("warren");
    let script = format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin HOME={} exec {} \"$@\"\n",
        dir.path().display(),
        binary().display()
    );
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = WorkspaceHost::of(Serve::new(&wrapper).set("--workspace-token", TOKEN)).await;
    let mut client = place.client().await;
    for (name, package) in [
        ("claude", "@anthropic-ai/claude-code"),
        ("codex", "@openai/codex"),
        ("gemini", "@google/gemini-cli"),
        ("opencode", "opencode-ai"),
    ] {
        for mode in ["sdk", "pty"] {
            let new = json!({
                "type": "new_session", "working_dir": place.dir(), "provider": name, "mode": mode,
            });
            let words = client.refused(new).await;
            assert!(words.contains(package), "{name} {mode}: {words}");
        }
    }
    let new =
        json!({"type": "new_session", "working_dir": place.dir(), "provider": "no-such-agent"});
    assert!(client.refused(new).await.contains("no-such-agent"));
    assert!(super::kit::listed(&mut client).await.is_empty());
}

#[tokio::test]
async fn a_turn_of_an_agent_that_says_nothing_fails_and_the_next_one_works() {
    // Shorter than it takes to end a process that does not want to: the next turn waits for that, and
    // its time does not run meanwhile.
    let agents = Arc::new(Agents::with("silence_secs = 4").await);
    let mut talks = JoinSet::new();
    for name in NAMES {
        let agents = Arc::clone(&agents);
        talks.spawn(async move {
            let mut viewer = agents.talk(name).await;
            let said = viewer.turn("hang").await;
            assert_eq!(said.outcome, "failed", "{name}: {said:?}");
            assert!(said.error.is_string(), "{name}: {said:?}");
            let said = viewer.turn("say well again").await;
            let ended = (&*said.outcome, &*said.text);
            assert_eq!(ended, ("completed", "well again"), "{name}: {said:?}");
        });
    }
    while let Some(talked) = talks.join_next().await {
        talked.unwrap();
    }
}

#[tokio::test]
async fn a_turn_of_an_agent_that_crashes_fails_with_what_it_complained_of() {
    let agents = Agents::start().await;
    for name in NAMES {
        let mut viewer = agents.talk(name).await;
        let said = viewer.turn("crash").await;
        assert_eq!(said.outcome, "failed", "{name}: {said:?}");
        assert!(said.error.as_str().unwrap().contains("told to crash"), "{name}: {said:?}");
        let said = viewer.turn("say well again").await;
        assert_eq!((&*said.outcome, &*said.text), ("completed", "well again"), "{name}: {said:?}");
    }
}

#[tokio::test]
async fn garbage_and_lines_without_end_are_output_and_harm_no_turn() {
    let agents = Agents::start().await;
    for name in NAMES {
        let mut viewer = agents.talk(name).await;
        let said = viewer.turn("garbage; flood; say it is well").await;
        assert_eq!(said.outcome, "completed", "{name}: {said:?}");
        assert!(said.text.contains("it is well"), "{name}: {:?}", said.outcome);
    }
    assert_eq!(agents.place.daemon.health().await["ok"], true);
}

#[tokio::test]
async fn an_agent_that_never_exits_and_one_that_hides_are_ended_with_their_session() {
    let agents = Agents::with("").await;
    let mut viewer = agents.talk("claude").await;
    viewer.turn("never exit; say so").await;
    let said = viewer.turn("daemonise").await;
    let hidden: u32 = said.text.trim().parse().unwrap_or_else(|_| panic!("{said:?}"));
    let id = viewer.id();
    viewer.client.say(about("kill_session", &id)).await;
    viewer.told("session_killed").await;
    agents.mark().is_gone().await;
    let gone = async || {
        let line = std::fs::read(format!("/proc/{hidden}/cmdline")).unwrap_or_default();
        !line.starts_with(b"sleep\0")
    };
    testkit::eventually("the end of the hidden process", testkit::DEADLINE, gone).await;
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_no_agent_that_never_exits() {
    let mut agents = Agents::start().await;
    let mut viewer = agents.talk("claude").await;
    viewer.turn("never exit; say so").await;
    viewer.prompts("hang").await;
    viewer.told_where("agent_event", |told| told["event"]["kind"] == "turn_started").await;
    let mark: Mark = agents.mark();
    agents.place.daemon.kill9().await;
    mark.is_gone().await;
}
