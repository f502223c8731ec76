//! Teams of fake agents in a whole workspace.

use std::time::Duration;

use protocol::workspace::{
    Role, ServerMessage, SessionId, SessionStatus, TeamId,
    client::{HandoffResult, TeamCreated},
    decode_request,
};
use store::{Change, WorkspaceStore as _};
use testkit::{
    DEADLINE,
    agents::{FakeAgents, program},
    eventually,
};

use crate::{
    Workspace,
    identity::{Identity, Member},
    refusal::Refusal,
    teams::{facts::KIND, tests::rig::answer},
    testing::{Site, soon},
};

fn place() -> Site {
    let mut place = Site::new();
    let agents = FakeAgents::install(&program(), &place.dir.path().join("agents"));
    place.settings.agents.programs = agents.all();
    place.settings.agents.silence = Duration::from_secs(3600);
    place
}

async fn say(workspace: &Workspace, message: &str) -> Result<ServerMessage, Refusal> {
    let who = Identity { who: "test".to_owned(), role: Role::Write, member: None };
    let desk = workspace.0.admission.services.teams.desk(&who);
    soon(answer(desk, decode_request(message).unwrap())).await
}

async fn create(workspace: &Workspace, place: &Site) -> TeamCreated {
    let dir = place.dir.path().to_str().unwrap();
    let create = format!(r#"{{"type":"create_team","name":"crew","working_dir":"{dir}"}}"#);
    match say(workspace, &create).await.unwrap() {
        ServerMessage::TeamCreated(made) => made,
        other => panic!("{other:?}"),
    }
}

async fn handoff(workspace: &Workspace, team: TeamId, prompt: &str) -> HandoffResult {
    let handoff = format!(
        r#"{{"type":"handoff","team_id":"{team}","prompt":"{prompt}","timeout_ms":15000}}"#
    );
    match say(workspace, &handoff).await.unwrap() {
        ServerMessage::HandoffResult(result) => result,
        other => panic!("{other:?}"),
    }
}

async fn relay(workspace: &Workspace, team: TeamId, from: SessionId, to: SessionId, text: &str) {
    let relay = format!(
        r#"{{"type":"relay_team_message","team_id":"{team}","from_session_id":"{from}",
        "to_session_id":"{to}","payload":"{text}"}}"#
    );
    say(workspace, &relay).await.unwrap();
}

/// A workspace with a team.
async fn crew() -> (Site, Workspace, TeamCreated) {
    let place = place();
    let workspace = place.start().await;
    let made = create(&workspace, &place).await;
    (place, workspace, made)
}

#[tokio::test]
async fn an_agent_does_what_it_is_handed_and_its_last_words_are_the_result() {
    let (_place, workspace, made) = crew().await;
    let result = handoff(&workspace, made.team.id, "say all is well").await;
    assert_eq!((result.completed, result.success), (true, true), "{result:?}");
    assert_eq!(result.result.as_deref(), Some("all is well"));
    let worker = workspace.0.sessions.info(result.worker_session_id).unwrap();
    assert_eq!((worker.team_id, worker.is_team_leader), (Some(made.team.id), false));
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_message_begins_a_turn_that_knows_who_it_is_from() {
    let (_place, workspace, made) = crew().await;
    let (team, leader) = (made.team.id, made.leader_session.id);
    let worker = handoff(&workspace, team, "say first").await.worker_session_id;
    relay(&workspace, team, leader, worker, "say second").await;
    relay(&workspace, team, leader, worker, "recall").await;
    let wait =
        format!(r#"{{"type":"team_wait","team_id":"{team}","for_session_ids":["{worker}"]}}"#);
    let ServerMessage::TeamWaitResult(waited) = say(&workspace, &wait).await.unwrap() else {
        panic!()
    };
    let told = &waited.results[0].result;
    let heading = format!("[team message 2 from leader \"crew\", session {leader}]\n\nsay second");
    assert!(told.contains(&heading), "{told}");
    workspace.shut_down().await;
}

#[tokio::test]
async fn the_result_is_that_of_the_turn_with_the_work_whatever_others_say_before() {
    let (_place, workspace, made) = crew().await;
    let (team, leader) = (made.team.id, made.leader_session.id);
    let worker = handoff(&workspace, team, "say first").await.worker_session_id;
    for text in ["slow 100; say a client's", "say another's"] {
        workspace.0.sessions.prompt(worker, None, text.to_owned(), None).unwrap();
    }
    relay(&workspace, team, leader, worker, "say the leader's").await;
    let wait = format!(r#"{{"type":"team_wait","team_id":"{team}"}}"#);
    let ServerMessage::TeamWaitResult(waited) = say(&workspace, &wait).await.unwrap() else {
        panic!()
    };
    assert_eq!(waited.results[0].result, "the leader's");
    workspace.shut_down().await;
}

#[tokio::test]
async fn killing_a_worker_ends_the_handoff_to_it() {
    let place = place();
    let workspace = place.start().await;
    let team = create(&workspace, &place).await.team.id;
    let killing = async {
        let workers =
            || workspace.0.sessions.list(true).into_iter().filter(|one| !one.is_team_leader);
        let works = async || workers().any(|one| one.status == SessionStatus::Running);
        eventually("the worker works", DEADLINE, works).await;
        let worker = workers().next().unwrap().id;
        workspace.0.sessions.kill(worker).await.unwrap();
    };
    let (result, ()) = tokio::join!(handoff(&workspace, team, "hang"), killing);
    assert_eq!((result.completed, result.success), (true, false), "{result:?}");
    workspace.shut_down().await;
}

#[tokio::test]
async fn the_sessions_own_environment_carries_no_token() {
    let place = place();
    let workspace = place.start().await;
    let team = create(&workspace, &place).await.team.id;
    for name in ["WARREN_TOKEN", "WARREN_SERVER", "WARREN_TEAM"] {
        let result = handoff(&workspace, team, &format!("env {name}")).await;
        assert_eq!(result.result.as_deref(), Some("unset"));
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_team_is_there_after_a_restart_and_deleting_it_ends_its_sessions() {
    let (place, workspace, made) = crew().await;
    let team = made.team.id;
    let worker = handoff(&workspace, team, "say done").await.worker_session_id;
    let member = Member { team, session: worker };
    let token = workspace.0.host.team_server(member.team, member.session).env;
    let token = token.iter().find(|(name, _)| name == "WARREN_TOKEN").unwrap().1.clone();
    assert_eq!(workspace.0.host.member_tokens.member(token.expose()), Some(member));
    let workspace = place.restart(workspace).await;
    assert_eq!(
        workspace.0.host.member_tokens.member(token.expose()),
        None,
        "tokens die with the daemon"
    );
    relay(&workspace, team, made.leader_session.id, worker, "say more").await;
    let wait = format!(r#"{{"type":"team_wait","team_id":"{team}"}}"#);
    let ServerMessage::TeamWaitResult(waited) = say(&workspace, &wait).await.unwrap() else {
        panic!()
    };
    assert_eq!(waited.results[0].result, "more");
    say(&workspace, &format!(r#"{{"type":"delete_team","team_id":"{team}"}}"#)).await.unwrap();
    assert!(workspace.0.sessions.list(true).is_empty());
    workspace.shut_down().await;
}

#[tokio::test]
async fn sessions_of_a_team_that_is_no_more_are_ended_at_the_start() {
    let place = place();
    let workspace = place.start().await;
    create(&workspace, &place).await;
    workspace.shut_down().await;
    drop(workspace);
    let kept = place.store.load_facts(KIND).unwrap().into_iter();
    let forget = kept.map(|fact| Change::Forget { kind: fact.kind, id: fact.id });
    place.store.change_facts(&forget.collect::<Vec<_>>()).unwrap();

    let workspace = place.start().await;
    let ended = async || workspace.0.sessions.list(true).is_empty();
    eventually("its sessions are gone", DEADLINE, ended).await;
    workspace.shut_down().await;
}
