//! Teams: leaders, team workers, what they say to each other, and what comes of it.

use serde_json::{Value, json};
use testkit::workspace::{WorkspaceClient, samples::NOBODY};

use super::{
    kit::{Viewer, id_of, listed},
    talk::Agents,
};
use crate::common::assert_fields;

/// A team whose leader is a fake agent.
struct Team {
    agents: Agents,
    client: WorkspaceClient,
    id: String,
    leader: String,
}

impl Team {
    async fn new() -> Self {
        Self::of(Agents::start().await).await
    }

    async fn of(agents: Agents) -> Self {
        let mut client = agents.place.client().await;
        let create = json!({
            "type": "create_team", "name": "research", "working_dir": agents.place.dir(),
            "provider": "claude",
        });
        let made = client.ask(create, "team_created").await;
        let (id, leader) = (id_of(&made["team"]), id_of(&made["leader_session"]));
        Self { agents, client, id, leader }
    }

    fn about(&self, kind: &str, rest: &Value) -> Value {
        let mut message = json!({"type": kind, "team_id": self.id});
        for (name, value) in rest.as_object().expect("fields") {
            message[name] = value.clone();
        }
        message
    }

    async fn asks(&mut self, kind: &str, rest: Value, answer: &str) -> Value {
        let message = self.about(kind, &rest);
        self.client.ask(message, answer).await
    }

    async fn worker(&mut self) -> String {
        let spawned = self.asks("spawn_worker", json!({"name": "w"}), "worker_spawned").await;
        id_of(&spawned["worker_session"])
    }
}

#[tokio::test]
async fn create_team_makes_a_leader_that_is_a_session_like_any_other() {
    let agents = Agents::start().await;
    let mut client = agents.place.client().await;
    let create = json!({
        "type": "create_team", "name": "research", "working_dir": agents.place.dir(),
        "provider": "claude",
    });
    let made = client.ask(create, "team_created").await;
    let (team, leader) = (&made["team"], &made["leader_session"]);
    assert_eq!((&team["name"], &team["status"]), (&json!("research"), &json!("active")), "{team}");
    assert_fields(team, &json!({"worker_session_ids": [], "leader_session_id": leader["id"]}));
    assert_eq!((&leader["team_id"], &leader["is_team_leader"]), (&team["id"], &json!(true)));
    assert_eq!((&leader["mode"], &leader["status"]), (&json!("sdk"), &json!("idle")));
    let mut viewer = Viewer::of(client, &id_of(leader)).await;
    assert_eq!(viewer.turn("say I lead").await.text, "I lead");
}

#[tokio::test]
async fn spawn_worker_adds_one_where_the_leader_works() {
    let mut team = Team::new().await;
    let spawned = team.asks("spawn_worker", json!({"name": "worker-1"}), "worker_spawned").await;
    let worker = &spawned["worker_session"];
    assert_eq!(spawned["team"]["worker_session_ids"], json!([worker["id"]]), "{spawned}");
    assert_eq!((&worker["team_id"], &worker["is_team_leader"]), (&json!(team.id), &json!(false)));
    assert_fields(worker, &json!({"name": "worker-1", "working_dir": team.agents.place.dir()}));
    let words = team.client.refused(json!({"type": "spawn_worker", "team_id": NOBODY})).await;
    assert!(words.contains(NOBODY), "{words}");
}

#[tokio::test]
async fn list_teams_and_get_team_tell_what_there_is() {
    let mut team = Team::new().await;
    team.worker().await;
    let list = team.client.ask(json!({"type": "list_teams"}), "team_list").await;
    assert_eq!(list["teams"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["teams"][0]["id"], team.id.as_str());
}

#[tokio::test]
async fn get_team_tells_one_team() {
    let mut team = Team::new().await;
    let worker = team.worker().await;
    let list = team.asks("get_team", json!({}), "team_list").await;
    assert_eq!(list["teams"][0]["worker_session_ids"], json!([worker]), "{list}");
    let words = team.client.refused(json!({"type": "get_team", "team_id": NOBODY})).await;
    assert!(words.contains(NOBODY), "{words}");
}

#[tokio::test]
async fn delete_team_ends_its_sessions_and_tells_everybody() {
    let mut team = Team::new().await;
    let mut other = team.agents.place.client().await;
    let worker = team.worker().await;
    let mut viewer = Viewer::of(team.agents.place.client().await, &worker).await;
    viewer.turn("say warm").await;
    let deleted = team.asks("delete_team", json!({}), "team_deleted").await;
    assert_eq!(deleted["team_id"], team.id.as_str());
    other.hear("team_deleted").await;
    viewer.told("session_killed").await;
    assert!(listed(&mut team.client).await.is_empty());
    team.agents.mark().is_gone().await;
    let list = team.client.ask(json!({"type": "list_teams"}), "team_list").await;
    assert_eq!(list["teams"], json!([]));
}

#[tokio::test]
async fn relay_team_message_is_kept_shown_and_becomes_the_next_prompt() {
    let mut team = Team::new().await;
    let worker = team.worker().await;
    let mut viewer = Viewer::of(team.agents.place.client().await, &worker).await;
    let relay = json!({
        "type": "relay_team_message", "team_id": team.id, "from_session_id": team.leader,
        "to_session_id": worker, "payload": "say understood",
    });
    let sent = team.client.ask(relay, "team_message_sent").await;
    assert_eq!((&sent["team_id"], sent["seq"].is_u64()), (&json!(team.id), true), "{sent}");
    let message = viewer.told("team_message").await;
    assert_fields(&message, &json!({"payload": "say understood", "from_session_id": team.leader}));
    let said = viewer.turn_ends().await;
    assert_eq!(said.text, "understood", "{said:?}");
    // To everybody, and to the leader.
    let all = json!({"from_session_id": team.leader, "payload": "say all heard it"});
    team.asks("relay_team_message", all, "team_message_sent").await;
    assert_eq!(viewer.turn_ends().await.text, "all heard it");
    let mut leader = Viewer::of(team.agents.place.client().await, &team.leader).await;
    let up = json!({"from_session_id": worker, "payload": "say the leader heard"});
    team.asks("relay_team_message", up, "team_message_sent").await;
    assert_eq!(leader.turn_ends().await.text, "the leader heard");
    let stranger = json!({"from_session_id": NOBODY, "payload": "x"});
    let message = team.about("relay_team_message", &stranger);
    team.client.refused(message).await;
}

#[tokio::test]
async fn get_team_inbox_replays_from_any_place_also_after_the_server_was_killed() {
    let mut team = Team::new().await;
    let worker = team.worker().await;
    let mut seqs = Vec::new();
    // The first keeps the worker busy, so that no later one begins before the server is killed: a
    // message whose turn has begun is not delivered again.
    let payloads = (1..5).map(|number| format!("say number {number}"));
    for payload in ["hang".to_owned()].into_iter().chain(payloads) {
        let relay = json!({
            "from_session_id": team.leader, "to_session_id": worker, "payload": payload,
        });
        seqs.push(team.asks("relay_team_message", relay, "team_message_sent").await["seq"].clone());
        team.agents.place.is(&worker, "running").await;
    }
    team.agents.place.daemon.kill_and_restart().await;
    team.client = team.agents.place.client().await;
    let ask = json!({"type": "get_team_inbox", "team_id": team.id, "session_id": worker});
    let inbox = team.client.ask(ask, "team_inbox").await;
    let messages = inbox["messages"].as_array().unwrap();
    let told: Vec<&Value> = messages.iter().map(|message| &message["seq"]).collect();
    assert_eq!(told, seqs.iter().collect::<Vec<_>>(), "{inbox}");
    assert_eq!(messages[4]["payload"], "say number 4");
    assert!(
        messages[0]["delivered_at"].is_string() && inbox["next_seq"].as_u64() > seqs[4].as_u64()
    );
    let since = json!({"session_id": worker, "since_seq": seqs[3]});
    let inbox = team.asks("get_team_inbox", since, "team_inbox").await;
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 2, "{inbox}");
    let next = json!({"session_id": worker, "since_seq": inbox["next_seq"]});
    let rest = team.asks("get_team_inbox", next, "team_inbox").await;
    assert_eq!(rest["messages"], json!([]), "{rest}");
    // What had not reached the agent reaches it now.
    let mut viewer = Viewer::of(team.agents.place.client().await, &worker).await;
    let recalled = async {
        loop {
            let said = viewer.turn("recall").await.text;
            if said.contains("say number 4") {
                return;
            }
        }
    };
    testkit::within("the last message reaching its addressee", recalled).await;
}

#[tokio::test]
async fn handoff_waits_for_the_result_or_says_how_to_wait_on() {
    let mut team = Team::new().await;
    let work =
        json!({"prompt": "say all is well", "worker_name": "explorer", "timeout_ms": 20_000});
    let result = team.asks("handoff", work, "handoff_result").await;
    assert_fields(&result, &json!({"completed": true, "success": true}));
    assert_eq!((&result["result"], &result["wait_id"]), (&json!("all is well"), &Value::Null));
    let work = json!({"prompt": "slow 1500; say late", "timeout_ms": 50});
    let result = team.asks("handoff", work, "handoff_result").await;
    assert_fields(&result, &json!({"completed": false, "result": null}));
    let wait = json!({"wait_id": result["wait_id"], "timeout_ms": 20_000});
    let waited = team.asks("team_wait", wait, "team_wait_result").await;
    assert_eq!(waited["completed_workers"], json!([result["worker_session_id"]]), "{waited}");
    assert_eq!(waited["results"][0]["result"], "late", "{waited}");
}

#[tokio::test]
async fn assign_does_not_wait_and_the_result_is_told_to_everybody() {
    let mut team = Team::new().await;
    let mut other = team.agents.place.client().await;
    let assigned = team.asks("assign", json!({"prompt": "say done so"}), "worker_assigned").await;
    let result = other.hear("worker_result_received").await;
    assert_eq!(result["worker_session_id"], assigned["worker_session_id"]);
    assert_eq!((&result["result"], &result["success"]), (&json!("done so"), &json!(true)));
    assert_eq!(other.hear("team_completed").await["team_id"], team.id.as_str());
    let failed = team.asks("assign", json!({"prompt": "crash"}), "worker_assigned").await;
    let of_it = |told: &Value| told["worker_session_id"] == failed["worker_session_id"];
    let result = other.hear_where("worker_result_received", of_it).await;
    assert_eq!(result["success"], false, "{result}");
}

#[tokio::test]
async fn team_wait_ends_when_all_have_reported_or_one_has_died() {
    let mut team = Team::new().await;
    let mut workers = Vec::new();
    for prompt in ["say one", "slow 300; say two", "hang"] {
        let assigned = team.asks("assign", json!({"prompt": prompt}), "worker_assigned").await;
        workers.push(assigned["worker_session_id"].clone());
    }
    let two = json!({"for_session_ids": workers[..2], "timeout_ms": 20_000});
    let waited = team.asks("team_wait", two, "team_wait_result").await;
    assert_fields(&waited, &json!({"timed_out": false, "pending_workers": []}));
    assert_eq!(waited["completed_workers"].as_array().unwrap().len(), 2, "{waited}");
    let last = json!({"for_session_ids": [workers[2]], "timeout_ms": 50});
    let waited = team.asks("team_wait", last, "team_wait_result").await;
    assert_fields(&waited, &json!({"timed_out": true, "pending_workers": [workers[2]]}));
    let on = json!({"wait_id": waited["wait_id"], "timeout_ms": 20_000});
    let message = team.about("team_wait", &on);
    team.client.say(message).await;
    let mut other = team.agents.place.client().await;
    other.ask(json!({"type": "kill_session", "session_id": workers[2]}), "session_killed").await;
    let waited = team.client.hear("team_wait_result").await;
    assert_eq!(waited["pending_workers"], json!([]), "{waited}");
}

#[tokio::test]
async fn report_result_counts_once_for_a_turn() {
    let mut team = Team::new().await;
    // The worker's own report is of the turn for certain.
    let prompt = r#"mcp report {"result": "the first"}; wait"#;
    let assigned = team.asks("assign", json!({"prompt": prompt}), "worker_assigned").await;
    let worker = assigned["worker_session_id"].clone();
    team.client.hear("worker_result_received").await;
    let second = json!({"worker_session_id": worker, "success": true, "result": "the second"});
    let received = team.asks("report_result", second, "worker_result_received").await;
    assert_eq!(received["result"], "the first", "{received}");
    let wait = json!({"for_session_ids": [worker], "timeout_ms": 20_000});
    let waited = team.asks("team_wait", wait, "team_wait_result").await;
    assert_eq!(waited["completed_workers"], json!([worker]), "{waited}");
    let stranger = json!({"worker_session_id": NOBODY, "success": true, "result": "x"});
    let message = team.about("report_result", &stranger);
    team.client.refused(message).await;
}

#[tokio::test]
async fn agents_use_their_team_by_the_tools_that_they_are_started_with() {
    let mut team = Team::new().await;
    let mut leader = Viewer::of(team.agents.place.client().await, &team.leader).await;
    let handed =
        leader.turn(r#"mcp handoff {"prompt": "say from below", "timeout_seconds": 20}"#).await;
    assert!(handed.text.contains("from below"), "{handed:?}");
    let assigned =
        leader.turn(r#"mcp assign {"prompt": "mcp report {\"result\": \"by tool\"}"}"#).await;
    assert_eq!(assigned.outcome, "completed", "{assigned:?}");
    let told = |told: &Value| told["result"].as_str().is_some_and(|it| it.contains("by tool"));
    team.client.hear_where("worker_result_received", told).await;
    let inbox = leader.turn("mcp inbox {}").await;
    assert_eq!(inbox.outcome, "completed", "{inbox:?}");
}
