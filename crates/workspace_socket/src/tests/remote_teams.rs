//! Agents on another member: their open questions, and teams whose workers they are.

use std::time::Duration;

use cluster::testing::until;
use serde_json::{Value, json};
use testkit::agents::{FakeAgents, program};

use super::{
    kit::{Caller, Kit},
    members::Pair,
};

/// Two members with fake agents. The team is on the owner.
pub(super) struct TeamPair {
    pair: Pair,
    client: Caller,
    team: Value,
    leader: Value,
}

/// A machine with fake agents.
pub(super) async fn kit() -> Kit {
    Kit::with(|settings| {
        let agents = FakeAgents::install(&program(), &settings.dir.join("agents"));
        settings.agents.programs = agents.all();
        settings.agents.silence = Duration::from_secs(3600);
    })
    .await
}

impl TeamPair {
    async fn new() -> Self {
        let pair = Pair::of(kit().await, kit().await).await;
        let mut client = pair.owner.client().await;
        let create =
            json!({"type": "create_team", "name": "crew", "working_dir": pair.owner.dir()});
        let made = client.ask(create, "team_created").await;
        let (team, leader) = (made["team"]["id"].clone(), made["leader_session"]["id"].clone());
        Self { pair, client, team, leader }
    }

    fn about(&self, kind: &str, rest: Value) -> Value {
        let mut message = json!({"type": kind, "team_id": self.team});
        let Value::Object(rest) = rest else { panic!("fields") };
        message.as_object_mut().unwrap().extend(rest);
        message
    }

    async fn asks(&mut self, kind: &str, rest: Value, answer: &str) -> Value {
        let message = self.about(kind, rest);
        self.client.ask(message, answer).await
    }

    /// A worker on the other member with this work.
    async fn assign(&mut self, prompt: &str) -> Value {
        let dir = self.pair.entry.dir();
        let work = json!({"prompt": prompt, "node_id": "machine 2", "working_dir": dir});
        self.asks("assign", work, "worker_assigned").await["worker_session_id"].clone()
    }

    async fn wait(&mut self, worker: &Value) -> Value {
        let wait = json!({"for_session_ids": [worker], "timeout_ms": 15_000});
        let mut waited = self.asks("team_wait", wait, "team_wait_result").await;
        assert_eq!(waited["timed_out"], false, "{waited}");
        waited["results"][0].take()
    }

    fn runs_there(&self, worker: &Value) -> bool {
        let id = worker.as_str().unwrap().parse().unwrap();
        self.pair.entry.workspace.sessions.has(id)
    }

    async fn shut_down(self) {
        self.pair.shut_down().await;
    }
}

#[tokio::test]
async fn a_worker_on_another_member_has_its_work_its_messages_and_its_results() {
    let mut teams = TeamPair::new().await;
    let worker = teams.assign("say hello from afar").await;
    assert!(teams.runs_there(&worker));
    let result = teams.wait(&worker).await;
    assert_eq!((&result["success"], &result["result"]), (&json!(true), &json!("hello from afar")));
    let relay = json!({"from_session_id": teams.leader, "to_session_id": worker,
        "payload": "say once more"});
    teams.asks("relay_team_message", relay, "team_message_sent").await;
    assert_eq!(teams.wait(&worker).await["result"], "once more");
    let inbox = teams.asks("get_team_inbox", json!({"session_id": worker}), "team_inbox").await;
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 2, "{inbox}");
    let list = teams.asks("get_team", json!({}), "team_list").await;
    assert_eq!(list["teams"][0]["worker_session_ids"], json!([worker]));
    teams.shut_down().await;
}

#[tokio::test]
async fn a_worker_is_refused_on_a_machine_that_is_unknown_or_cannot_make_it_or_be_reached() {
    let mut teams = TeamPair::new().await;
    let refused = async |teams: &mut TeamPair, work: Value| {
        let refused = teams.asks("assign", work, "error").await;
        refused["message"].as_str().unwrap().to_owned()
    };
    let words = refused(&mut teams, json!({"prompt": "x", "node_id": "nowhere"})).await;
    assert!(words.contains("there is no node \"nowhere\""), "{words}");
    let nowhere = json!({"prompt": "x", "node_id": "node-2", "working_dir": "/no/such/place"});
    let words = refused(&mut teams, nowhere).await;
    assert!(words.contains("machine 2: ") && words.contains("/no/such/place"), "{words}");
    teams.pair.machines.1.cluster.shut_down();
    let cluster = teams.pair.machines.0.cluster.clone();
    until("it is out of reach", || !cluster.is_reachable("node-2")).await;
    let words = refused(&mut teams, json!({"prompt": "x", "node_id": "machine 2"})).await;
    assert!(words.contains("machine 2 cannot be reached"), "{words}");
    let list = teams.asks("get_team", json!({}), "team_list").await;
    assert_eq!(list["teams"][0]["worker_session_ids"], json!([]));
    teams.shut_down().await;
}

#[tokio::test]
async fn deleting_a_team_or_killing_a_worker_ends_the_session_on_its_machine() {
    let mut teams = TeamPair::new().await;
    let (killed, other) = (teams.assign("wait").await, teams.assign("wait").await);
    let mut there = teams.pair.entry.client().await;
    there.ask(json!({"type": "kill_session", "session_id": killed}), "session_killed").await;
    let result = teams.wait(&killed).await;
    assert_eq!(result["success"], false, "{result}");
    teams.asks("delete_team", json!({}), "team_deleted").await;
    until("its session has ended", || !teams.runs_there(&other)).await;
    teams.shut_down().await;
}

#[tokio::test]
async fn results_and_messages_arrive_once_however_often_the_link_is_cut() {
    let mut teams = TeamPair::new().await;
    let worker = teams.assign("say 0").await;
    assert_eq!(teams.wait(&worker).await["result"], "0");
    for number in 1..6 {
        teams.pair.machines.0.cut();
        let relay = json!({"from_session_id": teams.leader, "to_session_id": worker,
            "payload": format!("slow 50; say {number}")});
        teams.asks("relay_team_message", relay, "team_message_sent").await;
        teams.pair.machines.0.cut();
        assert_eq!(teams.wait(&worker).await["result"], number.to_string());
    }
    let id = worker.as_str().unwrap().parse().unwrap();
    let facts = teams.pair.entry.workspace.sessions.facts(id).unwrap();
    assert_eq!(facts.turn, 6, "each message began one turn");
    teams.shut_down().await;
}

#[tokio::test]
async fn a_worker_reaches_its_team_with_its_own_token_from_another_member() {
    let mut teams = TeamPair::new().await;
    let worker = teams.assign("say ready").await;
    teams.wait(&worker).await;
    let member = workspace::Member {
        team: teams.team.as_str().unwrap().parse().unwrap(),
        session: worker.as_str().unwrap().parse().unwrap(),
    };
    let server = teams.pair.entry.workspace.member_tokens.mcp(None, member);
    let (_, token) = server.env.iter().find(|(name, _)| name == "WARREN_TOKEN").unwrap();
    let mut agent = teams.pair.entry.client_with(token.expose()).await;
    let list = agent.ask(teams.about("get_team", json!({})), "team_list").await;
    assert_eq!(list["teams"][0]["id"], teams.team);
    let relay = json!({"from_session_id": worker, "payload": "say I hear you"});
    agent.ask(teams.about("relay_team_message", relay), "team_message_sent").await;
    let inbox = json!({"session_id": worker});
    agent.ask(teams.about("get_team_inbox", inbox), "team_inbox").await;
    // It is a worker there as here: it gives no work to others, and speaks for itself only.
    let refused = agent.ask(teams.about("assign", json!({"prompt": "x"})), "error").await;
    assert!(refused["message"].as_str().unwrap().contains("only the leader"), "{refused}");
    let forged = json!({"from_session_id": teams.leader, "payload": "x"});
    let refused = agent.ask(teams.about("relay_team_message", forged), "error").await;
    assert!(refused["message"].as_str().unwrap().contains("for itself"), "{refused}");
    let inbox = json!({"session_id": teams.leader});
    let inbox = teams.asks("get_team_inbox", inbox, "team_inbox").await;
    assert_eq!(inbox["messages"][0]["payload"], "say I hear you", "{inbox}");
    teams.shut_down().await;
}

#[tokio::test]
async fn viewers_of_a_worker_are_shown_its_messages_whichever_member_they_are_connected_to() {
    let mut teams = TeamPair::new().await;
    let worker = teams.assign("say ready").await;
    teams.wait(&worker).await;
    let mut here = teams.pair.owner.client().await;
    let mut there = teams.pair.entry.client().await;
    for viewer in [&mut here, &mut there] {
        viewer.ask(json!({"type": "attach", "session_id": worker}), "attached").await;
    }
    let relay = json!({"from_session_id": teams.leader, "to_session_id": worker,
        "payload": "say seen"});
    teams.asks("relay_team_message", relay, "team_message_sent").await;
    for viewer in [&mut here, &mut there] {
        assert_eq!(viewer.hear_of("team_message").await["payload"], "say seen");
    }
    teams.shut_down().await;
}

#[tokio::test]
async fn clients_of_other_members_hear_how_many_questions_of_an_agent_are_open() {
    let pair = Pair::of(kit().await, kit().await).await;
    let mut there = pair.owner.client().await;
    let new = json!({"type": "new_session", "mode": "sdk", "working_dir": pair.owner.dir()});
    let id = there.ask(new, "session_created").await["session"]["id"].clone();
    let mut client = pair.entry.client().await;
    client.ask(json!({"type": "attach", "session_id": id}), "attached").await;
    client.say(json!({"type": "send_input", "session_id": id, "input": "ask Bash"}));
    hear_asks(&mut client, &id, 1).await;
    let listed = client.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(listed["sessions"][0]["asks"], 1, "{listed}");
    client.say(json!({"type": "interrupt", "session_id": id}));
    hear_asks(&mut client, &id, 0).await;
    pair.shut_down().await;
}

/// Waits for the word that a session of the first member has this many open questions.
async fn hear_asks(client: &mut Caller, id: &Value, asks: u32) {
    loop {
        let session = client.hear_of("session_status_changed").await["session"].take();
        if session["id"] == *id && session["asks"] == asks {
            assert_eq!(session["node_id"], "node-1");
            break;
        }
    }
}
