//! Teams of fake agents in a whole workspace.

use std::{sync::Arc, time::Duration};

use protocol::workspace::{
    Role, ServerMessage, SessionId, TeamId,
    client::{HandoffResult, TeamCreated},
    decode_request,
};
use store::{Change, WorkspaceStore as _};
use testkit::{
    DEADLINE,
    agents::{FakeAgents, program},
    eventually,
};
use workspace::{
    Identity, Member, Refusal, Sessions, TurnFollower, Workspace,
    testing::{Site, soon},
};

use crate::{Teams, facts::KIND, tests::rig::answer};

fn site() -> Site {
    let mut site = Site::new();
    let agents = FakeAgents::install(&program(), &site.dir.path().join("agents"));
    site.settings.agents.programs = agents.all();
    site.settings.agents.silence = Duration::from_secs(3600);
    site
}

/// A workspace with its teams.
struct Whole {
    workspace: Workspace,
    teams: Arc<Teams>,
}

impl Whole {
    async fn start(site: &Site) -> Self {
        let teams = Arc::<Teams>::default();
        let follower: Arc<dyn TurnFollower> = Arc::<Teams>::clone(&teams);
        let workspace = site.start_with(Arc::downgrade(&follower)).await;
        teams.restore(&workspace).await.unwrap();
        Self { workspace, teams }
    }

    fn sessions(&self) -> &Sessions {
        &self.workspace.sessions
    }

    async fn shut_down(self) {
        self.teams.flush().await;
        self.workspace.shut_down().await;
    }
}

async fn say(whole: &Whole, message: &str) -> Result<ServerMessage, Refusal> {
    let who = Identity { who: "test".to_owned(), role: Role::Write, member: None };
    let desk = whole.teams.requests(&whole.workspace).desk(&who);
    soon(answer(desk, decode_request(message).unwrap())).await
}

async fn create(whole: &Whole, site: &Site) -> TeamCreated {
    let dir = site.dir.path().to_str().unwrap();
    let create = format!(r#"{{"type":"create_team","name":"crew","working_dir":"{dir}"}}"#);
    match say(whole, &create).await.unwrap() {
        ServerMessage::TeamCreated(made) => made,
        other => panic!("{other:?}"),
    }
}

async fn handoff(whole: &Whole, team: TeamId, prompt: &str) -> HandoffResult {
    let handoff = format!(
        r#"{{"type":"handoff","team_id":"{team}","prompt":"{prompt}","timeout_ms":15000}}"#
    );
    match say(whole, &handoff).await.unwrap() {
        ServerMessage::HandoffResult(result) => result,
        other => panic!("{other:?}"),
    }
}

async fn relay(whole: &Whole, team: TeamId, from: SessionId, to: SessionId, text: &str) {
    let relay = format!(
        r#"{{"type":"relay_team_message","team_id":"{team}","from_session_id":"{from}",
        "to_session_id":"{to}","payload":"{text}"}}"#
    );
    say(whole, &relay).await.unwrap();
}

/// A workspace with a team.
async fn crew() -> (Site, Whole, TeamCreated) {
    let site = site();
    let whole = Whole::start(&site).await;
    let made = create(&whole, &site).await;
    (site, whole, made)
}

#[tokio::test]
async fn an_agent_does_what_it_is_handed_and_its_last_words_are_the_result() {
    let (_site, whole, made) = crew().await;
    let result = handoff(&whole, made.team.id, "say all is well").await;
    assert_eq!((result.completed, result.success), (true, true), "{result:?}");
    assert_eq!(result.result.as_deref(), Some("all is well"));
    let worker = whole.sessions().info(result.worker_session_id).unwrap();
    assert_eq!((worker.team_id, worker.is_team_leader), (Some(made.team.id), false));
    whole.shut_down().await;
}

#[tokio::test]
async fn the_result_is_that_of_the_turn_with_the_work_whatever_others_say_before() {
    let (_site, whole, made) = crew().await;
    let (team, leader) = (made.team.id, made.leader_session.id);
    let worker = handoff(&whole, team, "say first").await.worker_session_id;
    for text in ["slow 100; say a client's", "say another's"] {
        whole.sessions().prompt(worker, None, text.to_owned(), None).unwrap();
    }
    relay(&whole, team, leader, worker, "say the leader's").await;
    let wait = format!(r#"{{"type":"team_wait","team_id":"{team}"}}"#);
    let ServerMessage::TeamWaitResult(waited) = say(&whole, &wait).await.unwrap() else { panic!() };
    assert_eq!(waited.results[0].result, "the leader's");
    whole.shut_down().await;
}

#[tokio::test]
async fn the_sessions_own_environment_carries_no_token() {
    let site = site();
    let whole = Whole::start(&site).await;
    let team = create(&whole, &site).await.team.id;
    for name in ["WARREN_TOKEN", "WARREN_SERVER", "WARREN_TEAM"] {
        let result = handoff(&whole, team, &format!("env {name}")).await;
        assert_eq!(result.result.as_deref(), Some("unset"));
    }
    whole.shut_down().await;
}

#[tokio::test]
async fn a_team_is_there_after_a_restart_and_deleting_it_ends_its_sessions() {
    let (site, whole, made) = crew().await;
    let team = made.team.id;
    let worker = handoff(&whole, team, "say done").await.worker_session_id;
    let member = Member { team, session: worker };
    let token = whole.workspace.member_tokens.mcp(None, member).env;
    let token = token.iter().find(|(name, _)| name == "WARREN_TOKEN").unwrap().1.clone();
    assert_eq!(whole.workspace.member_tokens.member(token.expose()), Some(member));
    whole.shut_down().await;
    let whole = Whole::start(&site).await;
    assert_eq!(
        whole.workspace.member_tokens.member(token.expose()),
        None,
        "tokens die with the daemon"
    );
    relay(&whole, team, made.leader_session.id, worker, "say more").await;
    let wait = format!(r#"{{"type":"team_wait","team_id":"{team}"}}"#);
    let ServerMessage::TeamWaitResult(waited) = say(&whole, &wait).await.unwrap() else { panic!() };
    assert_eq!(waited.results[0].result, "more");
    say(&whole, &format!(r#"{{"type":"delete_team","team_id":"{team}"}}"#)).await.unwrap();
    assert!(whole.sessions().list(true).is_empty());
    whole.shut_down().await;
}

#[tokio::test]
async fn sessions_of_a_team_that_is_no_more_are_ended_at_the_start() {
    let site = site();
    let whole = Whole::start(&site).await;
    create(&whole, &site).await;
    whole.shut_down().await;
    let facts = site.store.load_facts(KIND).unwrap().into_iter();
    let forget = facts.map(|fact| Change::Forget { kind: fact.kind, id: fact.id });
    site.store.change_facts(&forget.collect::<Vec<_>>()).unwrap();

    let whole = Whole::start(&site).await;
    let ended = async || whole.sessions().list(true).is_empty();
    eventually("its sessions are gone", DEADLINE, ended).await;
    whole.shut_down().await;
}
