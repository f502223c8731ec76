//! Both ends, without a cluster between them.

use std::collections::BTreeMap;

use protocol::workspace::{
    AgentEvent, Project, ServerMessage, SessionId, TurnOutcome,
    client::{CreateProject, ProjectSaved},
};

use super::{
    ArrivalRecord, ArrivalState, LandingRequest, Manifest, ManifestFile, NotTaken, Parcel, Portable,
};
use crate::{
    Workspace,
    agents::tests::rig::{Rig, Watcher, create, prompt},
    sessions::NewSession,
    testing::soon,
};

/// A machine with a project of its own, whose agents keep their conversations apart.
struct Machine {
    rig: Rig,
    workspace: Workspace,
    project: Project,
}

impl Machine {
    async fn new() -> Self {
        let (rig, workspace) = Rig::start().await;
        let dir = rig.site.dir.path().join("project");
        std::fs::create_dir_all(dir.join("src")).unwrap();
        let state = rig.site.dir.path().join("claude");
        let env = BTreeMap::from([("CLAUDE_CONFIG_DIR", state)]);
        let env = env.into_iter().map(|(name, dir)| (name.to_owned(), dir.display().to_string()));
        let create = CreateProject {
            name: "p".to_owned(),
            working_dir: dir.display().to_string(),
            run_as_user: None,
            env: env.collect(),
        };
        let saved = workspace.projects.create("test", create).await.unwrap();
        let ServerMessage::ProjectSaved(ProjectSaved { project }) = saved else { panic!() };
        Self { rig, workspace, project }
    }

    async fn agent(&self) -> SessionId {
        let new = NewSession {
            project_id: Some(self.project.id),
            working_dir: format!("{}/src", self.project.working_dir),
            ..self.rig.new_session("claude")
        };
        create(&self.workspace, new).await.unwrap()
    }

    async fn packed(&self, id: SessionId) -> (Portable, Parcel) {
        let sessions = &self.workspace.sessions;
        let portable = sessions.portable(id).await.unwrap();
        soon(sessions.freeze(id, false)).await.unwrap();
        (portable, sessions.pack(id, false).await.unwrap())
    }

    /// Takes everything that goes along.
    async fn stages(&self, id: SessionId, portable: &Portable, parcel: &Parcel) -> ArrivalRecord {
        let sessions = &self.workspace.sessions;
        let request = LandingRequest {
            session_id: id,
            facts: &portable.facts,
            project: portable.project.as_deref(),
            below: portable.below.as_deref(),
            to_dir: None,
        };
        let landing = sessions.landing(request).await.unwrap();
        assert_eq!(landing.working_dir(), format!("{}/src", self.project.working_dir));
        let file =
            |file: &super::ParcelFile| ManifestFile { name: file.name.clone(), size: file.size };
        let manifest = Manifest {
            facts: landing.facts(&parcel.facts).unwrap(),
            last_seq: parcel.last_seq,
            queue: parcel.queue.clone(),
            applied: parcel.applied.clone(),
            files: parcel.files.iter().map(file).collect(),
        };
        let mut staging = sessions.stage(7, manifest).await.unwrap();
        for (number, file) in parcel.files.iter().enumerate() {
            let mut at = 0;
            while at < file.size {
                let piece = file.piece(at).unwrap();
                staging.write(u32::try_from(number).unwrap(), at, &piece).unwrap();
                at += piece.len() as u64;
            }
        }
        assert!(staging.is_whole());
        staging.finish().unwrap();
        let from = "there".to_owned();
        let state = ArrivalState::Staged;
        let record = ArrivalRecord { session_id: id, move_id: 7, moves: 1, from, state };
        sessions.keep_arrival(&record).await.unwrap();
        record
    }
}

/// The prompts of an agent's turns, as stored.
async fn prompts(workspace: &Workspace, id: SessionId) -> Vec<String> {
    let turns = workspace.sessions.turns(id, (0, u64::MAX), 1 << 20).await.unwrap();
    let prompts = turns.events.into_iter().filter_map(|stored| match stored.event {
        AgentEvent::TurnStarted { prompt, .. } => prompt,
        _ => None,
    });
    prompts.collect()
}

#[tokio::test]
async fn an_agent_goes_on_at_another_machine_with_its_conversation_history_and_queue() {
    let (one, two) = (Machine::new().await, Machine::new().await);
    let id = one.agent().await;
    let mut watcher = Watcher::attach(&one.workspace, id);
    watcher.turn(&one.workspace, "say the first").await;
    prompt(&one.workspace, id, "slow 300").unwrap();
    let sessions = &one.workspace.sessions;
    let queued = sessions.prompt(id, None, "recall".to_owned(), Some("input 1")).unwrap();
    assert!(queued.is_new);
    let (portable, parcel) = one.packed(id).await;
    assert_eq!((portable.project.as_deref(), portable.below.as_deref()), (Some("p"), Some("src")));
    assert!(portable.stays.is_empty(), "{portable:?}");
    assert_eq!((parcel.turn, &parcel.queue[..]), (2, &["recall".to_owned()][..]));
    assert_eq!(parcel.applied, ["input 1"]);
    for refused in [
        prompt(&one.workspace, id, "say more").unwrap_err(),
        sessions.kill(id).await.unwrap_err(),
        sessions.rename(id, "x".to_owned()).await.unwrap_err(),
    ] {
        assert!(refused.to_string().contains("moves to another machine"), "{refused}");
    }
    let record = two.stages(id, &portable, &parcel).await;
    assert!(!two.workspace.sessions.has(id));
    sessions.leave(id);
    assert!(!sessions.has(id));
    let applied = two.workspace.sessions.take(&record).await.unwrap();
    two.workspace.sessions.run_taken(&record, applied).await.unwrap();
    let mut there = Watcher::attach(&two.workspace, id);
    there.until_shown("say the first").await;
    assert_eq!(prompts(&two.workspace, id).await[0], "say the first");
    assert_eq!(there.end().await.turn, 3, "what waited");
    let second = two.workspace.sessions.prompt(id, None, "recall".to_owned(), Some("input 1"));
    assert!(!second.unwrap().is_new, "it was applied before the move");
    let said = there.turn(&two.workspace, "say the last; recall").await;
    assert_eq!((said.turn, said.outcome), (4, TurnOutcome::Completed), "{:?}", there.text);
    let recalled = said.text.unwrap_or_default();
    assert_eq!(recalled, "say the first | slow 300 | recall");
    let expected = ["say the first", "slow 300", "recall", "say the last; recall"];
    assert_eq!(prompts(&two.workspace, id).await, expected);
    let moves = two.rig.site.dir.path().join("workspace/moves");
    assert_eq!(moves.read_dir().unwrap().count(), 0, "nothing lies aside any more");
    for machine in [one, two] {
        machine.workspace.shut_down().await;
    }
}

#[tokio::test]
async fn a_session_that_does_not_move_after_all_goes_on_with_what_waits() {
    let one = Machine::new().await;
    let id = one.agent().await;
    let mut watcher = Watcher::attach(&one.workspace, id);
    watcher.ready().await;
    let sessions = &one.workspace.sessions;
    soon(sessions.freeze(id, false)).await.unwrap();
    prompt(&one.workspace, id, "say it waited").unwrap();
    let parcel = sessions.pack(id, false).await.unwrap();
    assert_eq!(parcel.queue, ["say it waited"]);
    sessions.thaw(id);
    watcher.until_shown("it waited").await;
    assert_eq!(watcher.end().await.turn, 1);
    assert_eq!(watcher.turn(&one.workspace, "recall").await.turn, 2);
    let facts = sessions.facts(id).unwrap();
    assert!(facts.waiting.is_empty(), "it went with the beginning of its turn: {facts:?}");
    one.workspace.shut_down().await;
}

#[tokio::test]
async fn a_queue_that_was_stored_is_worked_on_after_a_restart() {
    let Machine { rig, workspace, project } = Machine::new().await;
    let one = Machine { rig, workspace, project };
    let id = one.agent().await;
    soon(one.workspace.sessions.freeze(id, false)).await.unwrap();
    prompt(&one.workspace, id, "say it waited").unwrap();
    one.workspace.sessions.pack(id, false).await.unwrap();
    let workspace = one.rig.site.restart(one.workspace).await;
    let mut watcher = Watcher::attach(&workspace, id);
    watcher.ready().await;
    workspace.sessions.go_on();
    watcher.until_shown("it waited").await;
    assert_eq!(watcher.end().await.turn, 1);
    assert_eq!(watcher.turn(&workspace, "recall").await.turn, 2);
    let workspace = one.rig.site.restart(workspace).await;
    assert_eq!(prompts(&workspace, id).await, ["say it waited", "recall"]);
    workspace.shut_down().await;
}

#[tokio::test]
async fn what_was_staged_and_is_lost_is_not_taken() {
    let (one, two) = (Machine::new().await, Machine::new().await);
    let id = one.agent().await;
    let (portable, parcel) = one.packed(id).await;
    let record = two.stages(id, &portable, &parcel).await;
    std::fs::remove_dir_all(two.rig.site.dir.path().join("workspace/moves")).unwrap();
    let taken = two.workspace.sessions.take(&record).await;
    assert!(matches!(taken, Err(NotTaken::Lost(_))), "{taken:?}");
    assert!(!two.workspace.sessions.has(id));
    for machine in [one, two] {
        machine.workspace.shut_down().await;
    }
}

#[tokio::test]
async fn what_cannot_move_is_said_before() {
    let (one, two) = (Machine::new().await, Machine::new().await);
    let sessions = &one.workspace.sessions;
    let shell = sessions.create(one.rig.site.shell("cat")).await.unwrap();
    let refused = sessions.portable(shell.id).await.unwrap_err();
    assert!(refused.to_string().contains("a program in a terminal cannot"), "{refused}");
    // A dialect whose conversations cannot be found.
    let new = NewSession { project_id: Some(one.project.id), ..one.rig.new_session("own") };
    let own = create(&one.workspace, new).await.unwrap();
    assert!(sessions.portable(own).await.unwrap().stays.is_empty(), "nothing was said yet");
    let mut watcher = Watcher::attach(&one.workspace, own);
    watcher.turn(&one.workspace, "say hello").await;
    let portable = sessions.portable(own).await.unwrap();
    assert!(portable.stays[0].contains("conversation stays behind"), "{portable:?}");
    soon(sessions.freeze(own, false)).await.unwrap();
    assert!(sessions.pack(own, false).await.is_err());
    assert!(sessions.pack(own, true).await.is_ok());
    // A machine without the project, or without the agent.
    let id = one.agent().await;
    let portable = sessions.portable(id).await.unwrap();
    let request = |project, to_dir| LandingRequest {
        session_id: id,
        facts: &portable.facts,
        project,
        below: Some("src"),
        to_dir,
    };
    let there = &two.workspace.sessions;
    let refused = there.landing(request(Some("other"), None)).await.unwrap_err();
    assert!(refused.to_string().contains("no project \"other\""), "{refused}");
    let refused = there.landing(request(None, Some("/no/such/place"))).await.unwrap_err();
    assert!(refused.to_string().contains("/no/such/place"), "{refused}");
    let refused = sessions.landing(request(Some("p"), None)).await.unwrap_err();
    assert!(refused.to_string().contains("runs here already"), "{refused}");
    std::fs::remove_file(two.rig.agents.path("claude")).unwrap();
    assert!(there.landing(request(Some("p"), None)).await.is_err());
    for machine in [one, two] {
        machine.workspace.shut_down().await;
    }
}
