//! Adopted processes: real ones, some of them the fake Claude.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

use protocol::workspace::{AgentEvent, SessionId, SessionStatus};
use store::{Change, WorkspaceStore as _};
use testkit::agents::{FakeAgents, program};

use crate::{
    Workspace,
    agents::tests::rig::{Rig, Watcher, prompt},
    sessions::{NewEngine, NewSession, life::facts::KIND},
};

/// A process that the workspace did not start.
struct Foreign(Child);

impl Foreign {
    fn sleeping(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let foreign = Self(command.spawn().unwrap());
        while !foreign.has_begun() {
            std::thread::yield_now();
        }
        foreign
    }

    /// Whether the child runs its own program. Until then it has the name and environment of this
    /// test.
    fn has_begun(&self) -> bool {
        let command_line =
            |process: &str| std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
        let now = command_line(&self.0.id().to_string());
        !now.is_empty() && now != command_line("self")
    }

    /// The fake Claude with its own interface, in the directory of the site.
    fn claude(rig: &Rig) -> Self {
        let agents = FakeAgents::install(&program(), &rig.site.dir.path().join("agents"));
        let mut command = Command::new(agents.path("claude"));
        command.current_dir(rig.site.dir.path()).env("CLAUDE_CONFIG_DIR", agents.state());
        Self::sleeping(&mut command)
    }

    fn tell(&mut self, line: &str) {
        let stdin = self.0.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

async fn adopt(workspace: &Workspace, rig: &Rig, pid: u32) -> Result<SessionId, String> {
    let new = NewSession { engine: NewEngine::Adopted { pid }, ..rig.site.shell("") };
    let made = workspace.sessions.create(new).await;
    made.map(|info| info.id).map_err(|refusal| refusal.to_string())
}

async fn until_exited(workspace: &Workspace, id: SessionId) {
    testkit::eventually("the session ends", testkit::DEADLINE, || async {
        workspace.sessions.info(id).unwrap().status == SessionStatus::Exited
    })
    .await;
}

#[tokio::test]
async fn a_process_is_running_until_it_ends_and_is_not_spoken_to() {
    let (rig, workspace) = Rig::start().await;
    let mut foreign = Foreign::sleeping(&mut Command::new("cat"));
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    let info = workspace.sessions.info(id).unwrap();
    assert_eq!((info.status, info.adopted_pid), (SessionStatus::Running, Some(foreign.0.id())));
    assert!(prompt(&workspace, id, "x").unwrap_err().to_string().contains("no Claude"));
    drop(foreign.0.stdin.take());
    until_exited(&workspace, id).await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_session_that_is_killed_ends_its_process_and_a_daemon_that_ends_does_not() {
    let (rig, workspace) = Rig::start().await;
    let mut foreign = Foreign::sleeping(&mut Command::new("cat"));
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    workspace.shut_down().await;
    drop(workspace);
    assert!(!foreign.ended());
    let workspace = rig.site.start().await;
    assert_eq!(workspace.sessions.info(id).unwrap().status, SessionStatus::Running);
    workspace.sessions.kill(id).await.unwrap();
    assert!(foreign.0.wait().unwrap().code().is_none(), "by a signal");
    workspace.shut_down().await;
}

#[tokio::test]
async fn one_that_has_ended_while_the_daemon_was_away_is_exited() {
    let (rig, workspace) = Rig::start().await;
    let foreign = Foreign::sleeping(&mut Command::new("cat"));
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    workspace.shut_down().await;
    drop((workspace, foreign));
    let workspace = rig.site.start().await;
    assert_eq!(workspace.sessions.info(id).unwrap().status, SessionStatus::Exited);
    workspace.shut_down().await;
}

#[tokio::test]
async fn one_that_is_not_there_or_is_the_daemons_own_is_refused() {
    let (rig, workspace) = Rig::start().await;
    let own = [1, std::process::id(), workspace.host.supervisor.pid()];
    for pid in own {
        let refused = adopt(&workspace, &rig, pid).await.unwrap_err();
        assert!(refused.contains("own"), "{refused}");
    }
    let refused = adopt(&workspace, &rig, u32::MAX).await.unwrap_err();
    assert!(refused.contains("is gone"), "{refused}");
    assert_eq!(workspace.counts().sessions, 0);
    workspace.shut_down().await;
}

#[tokio::test]
async fn claudes_transcript_is_its_output_and_the_conversation_continues_in_a_copy() {
    let (rig, workspace) = Rig::start().await;
    let mut foreign = Foreign::claude(&rig);
    foreign.tell("say I am claude");
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    let mut seen = Watcher::attach(&workspace, id);
    seen.until_shown("I am claude").await;
    foreign.tell("say I go on");
    seen.until(|event| matches!(event, AgentEvent::Text { text, .. } if text == "I go on")).await;
    let heard = seen.answer(&workspace, "recall").await;
    assert_eq!(heard, "say I am claude | say I go on");
    assert_eq!(seen.answer(&workspace, "say mine").await, "mine");
    foreign.tell("recall; say done");
    seen.until_shown("done").await;
    assert!(!seen.text.contains("say mine | "), "the process does not hear of the copy");
    assert!(!foreign.ended());
    workspace.sessions.kill(id).await.unwrap();
    foreign.0.wait().unwrap();
    workspace.shut_down().await;
}

/// All lines of a session's output.
async fn lines(workspace: &Workspace, id: SessionId) -> Vec<String> {
    let past = workspace.sessions.history(id, u64::MAX, 1 << 20).await.unwrap();
    past.data.lines().map(str::to_owned).collect()
}

async fn until_said(workspace: &Workspace, id: SessionId, text: &str) {
    let said = || async { lines(workspace, id).await.iter().any(|line| line.contains(text)) };
    testkit::eventually("a line of the transcript", testkit::DEADLINE, said).await;
}

/// Waits until a position beyond `more_than` is stored for the transcript. Returns the stored
/// facts.
async fn until_kept(rig: &Rig, more_than: u64) -> serde_json::Value {
    let stored = || {
        let facts = rig.site.store.load_facts(KIND).unwrap();
        serde_json::from_str::<serde_json::Value>(&facts[0].json).unwrap()
    };
    let is_further = || async { stored()["transcript"]["at"].as_u64() > Some(more_than) };
    testkit::eventually("the place being kept", testkit::DEADLINE, is_further).await;
    stored()
}

#[tokio::test]
async fn each_line_of_a_transcript_is_said_once_over_restarts() {
    let (rig, workspace) = Rig::start().await;
    let mut foreign = Foreign::claude(&rig);
    foreign.tell("say the first");
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    until_said(&workspace, id, "say the first").await;
    let first = until_kept(&rig, 0).await["transcript"]["at"].as_u64().unwrap();
    foreign.tell("say the second");
    until_said(&workspace, id, "say the second").await;
    until_kept(&rig, first).await;
    workspace.shut_down().await;
    drop(workspace);
    foreign.tell("say meanwhile");

    let workspace = rig.site.start().await;
    until_said(&workspace, id, "say meanwhile").await;
    let before = lines(&workspace, id).await;
    workspace.shut_down().await;
    drop(workspace);
    // As if the daemon had been killed before it could store how far it had read.
    let mut fact = rig.site.store.load_facts(KIND).unwrap().remove(0);
    let mut stored: serde_json::Value = serde_json::from_str(&fact.json).unwrap();
    stored["transcript"]["at"] = 0.into();
    stored["transcript"]["seq"] = 0.into();
    fact.json = stored.to_string();
    rig.site.store.change_facts(&[Change::Keep(fact)]).unwrap();
    foreign.tell("say the last");

    let workspace = rig.site.start().await;
    until_said(&workspace, id, "say the last").await;
    let after = lines(&workspace, id).await;
    assert_eq!(after[..before.len()], before);
    for said in ["the first", "the second", "meanwhile", "the last"] {
        let prompts = after.iter().filter(|line| line.contains(&format!("say {said}"))).count();
        assert_eq!(prompts, 1, "{said}: {after:#?}");
    }
    workspace.sessions.kill(id).await.unwrap();
    foreign.0.wait().unwrap();
    workspace.shut_down().await;
}

#[tokio::test]
async fn the_copy_of_a_conversation_is_gone_on_with_after_a_restart() {
    let (rig, workspace) = Rig::start().await;
    let mut foreign = Foreign::claude(&rig);
    foreign.tell("say I am claude");
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    let mut seen = Watcher::attach(&workspace, id);
    seen.until_shown("I am claude").await;
    assert_eq!(seen.answer(&workspace, "say mine").await, "mine");
    drop(seen);
    let workspace = rig.site.restart(workspace).await;
    let mut seen = Watcher::attach(&workspace, id);
    let ended = seen.turn(&workspace, "recall").await;
    assert_eq!((ended.turn, ended.text.as_deref()), (2, Some("say I am claude | say mine")));
    foreign.tell("say still here");
    seen.until_shown("still here").await;
    workspace.sessions.kill(id).await.unwrap();
    foreign.0.wait().unwrap();
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_process_that_leads_its_group_is_killed_with_what_it_started() {
    let (rig, workspace) = Rig::start().await;
    let mark = testkit::workspace::Mark::new();
    let script = format!("sleep {word} & sleep {word} & wait", word = mark.word());
    let mut foreign = Foreign::sleeping(Command::new("sh").args(["-c", &script]).process_group(0));
    mark.has_processes(3).await;
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    workspace.sessions.kill(id).await.unwrap();
    foreign.0.wait().unwrap();
    mark.is_gone().await;
    workspace.shut_down().await;
}
