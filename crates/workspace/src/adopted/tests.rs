//! Adopted processes: real ones, some of them the fake Claude.

use std::{
    io::Write as _,
    process::{Child, Command, Stdio},
};

use protocol::workspace::{AgentEvent, SessionId, SessionStatus};
use testkit::agents::{FakeAgents, program};

use crate::{
    Workspace,
    agents::tests::rig::{Rig, Seen, prompt},
    sessions::{NewSession, What},
};

/// A process that nobody of ours started.
struct Foreign(Child);

impl Foreign {
    fn sleeping(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// The fake Claude with its own interface, in the directory of the place.
    fn claude(rig: &Rig) -> Self {
        let agents = FakeAgents::install(&program(), &rig.place.dir.path().join("agents"));
        let mut command = Command::new(agents.path("claude"));
        command.current_dir(rig.place.dir.path()).env("CLAUDE_CONFIG_DIR", agents.state());
        Self::sleeping(&mut command)
    }

    fn tell(&mut self, line: &str) {
        let stdin = self.0.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn has_ended(&mut self) -> bool {
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
    let new = NewSession { what: What::Adopted { pid }, ..rig.place.shell("") };
    let made = workspace.0.sessions.create(new).await;
    made.map(|info| info.id).map_err(|refusal| refusal.to_string())
}

async fn until_exited(workspace: &Workspace, id: SessionId) {
    testkit::eventually("the session ends", testkit::DEADLINE, || async {
        workspace.0.sessions.info(id).unwrap().status == SessionStatus::Exited
    })
    .await;
}

#[tokio::test]
async fn a_process_is_running_until_it_ends_and_is_not_spoken_to() {
    let rig = Rig::new();
    let workspace = rig.place.start().await;
    let mut foreign = Foreign::sleeping(&mut Command::new("cat"));
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    let info = workspace.0.sessions.info(id).unwrap();
    assert_eq!((info.status, info.adopted_pid), (SessionStatus::Running, Some(foreign.0.id())));
    assert!(prompt(&workspace, id, "x").unwrap_err().to_string().contains("no Claude"));
    drop(foreign.0.stdin.take());
    until_exited(&workspace, id).await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_session_that_is_killed_ends_its_process_and_a_daemon_that_ends_does_not() {
    let rig = Rig::new();
    let workspace = rig.place.start().await;
    let mut foreign = Foreign::sleeping(&mut Command::new("cat"));
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    workspace.shut_down().await;
    drop(workspace);
    assert!(!foreign.has_ended());
    let workspace = rig.place.start().await;
    assert_eq!(workspace.0.sessions.info(id).unwrap().status, SessionStatus::Running);
    workspace.0.sessions.kill(id).await.unwrap();
    assert!(foreign.0.wait().unwrap().code().is_none(), "by a signal");
    workspace.shut_down().await;
}

#[tokio::test]
async fn one_that_has_ended_while_the_daemon_was_away_is_exited() {
    let rig = Rig::new();
    let workspace = rig.place.start().await;
    let foreign = Foreign::sleeping(&mut Command::new("cat"));
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    workspace.shut_down().await;
    drop((workspace, foreign));
    let workspace = rig.place.start().await;
    assert_eq!(workspace.0.sessions.info(id).unwrap().status, SessionStatus::Exited);
    workspace.shut_down().await;
}

#[tokio::test]
async fn one_that_is_not_there_or_is_the_daemons_own_is_refused() {
    let rig = Rig::new();
    let workspace = rig.place.start().await;
    let own = [1, std::process::id(), workspace.0.supervisor.pid()];
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
async fn what_claude_writes_down_is_its_output_and_its_conversation_goes_on_in_a_copy() {
    let rig = Rig::new();
    let workspace = rig.place.start().await;
    let mut foreign = Foreign::claude(&rig);
    foreign.tell("say I am claude");
    let id = adopt(&workspace, &rig, foreign.0.id()).await.unwrap();
    let mut seen = Seen::attach(&workspace, id);
    seen.until_shown("I am claude").await;
    foreign.tell("say I go on");
    seen.until(|event| matches!(event, AgentEvent::Text { text, .. } if text == "I go on")).await;
    let heard = seen.answer(&workspace, "recall").await;
    assert_eq!(heard, "say I am claude | say I go on");
    assert_eq!(seen.answer(&workspace, "say mine").await, "mine");
    foreign.tell("recall; say done");
    seen.until_shown("done").await;
    assert!(!seen.text.contains("say mine | "), "the process does not hear of the copy");
    assert!(!foreign.has_ended());
    workspace.0.sessions.kill(id).await.unwrap();
    foreign.0.wait().unwrap();
    workspace.shut_down().await;
}
