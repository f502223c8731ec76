//! Teams whose workers run on other members, while members are killed.

use serde_json::{Value, json};
use testkit::{DEADLINE, eventually, workspace::WorkspaceClient};

use super::{
    cluster_kit::{linked, member, peer_address},
    kit::{Viewer, WorkspaceHost, id_of},
    talk::Agents,
};

/// Three members with fake agents. The team is kept on `owner`, its worker runs on `far`, and clients
/// come to `door`, which the others dial: both are found again after a restart.
struct Trio {
    door: WorkspaceHost,
    owner: Agents,
    far: Agents,
    team: String,
    leader: String,
}

impl Trio {
    async fn new() -> Self {
        let door = WorkspaceHost::of(member("door", "secret")).await;
        let peer = peer_address(&door).await;
        let owner = Agents::of(member("owner", "secret").set("--peer", &peer), "").await;
        let far = Agents::of(member("far", "secret").set("--peer", &peer), "").await;
        for host in [&door, &owner.place, &far.place] {
            linked(host, 2).await;
        }
        let create = json!({"type": "create_team", "name": "crew", "provider": "claude",
            "working_dir": owner.place.dir()});
        let made = owner.place.client().await.ask(create, "team_created").await;
        let (team, leader) = (id_of(&made["team"]), id_of(&made["leader_session"]));
        let trio = Self { door, owner, far, team, leader };
        for host in [&trio.door, &trio.far.place] {
            eventually("the team", DEADLINE, async || trio.knows_team(host).await).await;
        }
        trio
    }

    async fn knows_team(&self, host: &WorkspaceHost) -> bool {
        let list = host.client().await.ask(json!({"type": "list_teams"}), "team_list").await;
        list["teams"].as_array().expect("a list").iter().any(|team| team["id"] == self.team)
    }

    fn about(&self, kind: &str, rest: Value) -> Value {
        let mut message = json!({"type": kind, "team_id": self.team});
        let Value::Object(rest) = rest else { panic!("fields") };
        message.as_object_mut().expect("an object").extend(rest);
        message
    }

    /// A worker on `far` with this work, given through the door.
    async fn assign(&self, prompt: &str) -> String {
        let work = json!({"prompt": prompt, "node_id": "far", "working_dir": self.far.place.dir()});
        let mut client = self.door.client().await;
        let assigned = client.ask(self.about("assign", work), "worker_assigned").await;
        assigned["worker_session_id"].as_str().expect("an id").to_owned()
    }

    async fn send(&self, client: &mut WorkspaceClient, worker: &str, payload: &str) {
        let relay = json!({"from_session_id": self.leader, "to_session_id": worker,
            "payload": payload});
        client.ask(self.about("relay_team_message", relay), "team_message_sent").await;
    }

    /// The result of a worker's work, waited for through this member.
    async fn result(&self, host: &WorkspaceHost, worker: &str) -> Value {
        let wait = json!({"for_session_ids": [worker], "timeout_ms": 30_000});
        let mut client = host.client().await;
        let waited = client.ask(self.about("team_wait", wait), "team_wait_result").await;
        assert_eq!(waited["timed_out"], false, "{waited}");
        waited["results"][0].clone()
    }

    async fn runs(&self, worker: &str) {
        self.far.place.is(worker, "running").await;
    }

    /// How many turns the worker has begun, as its own machine counts.
    async fn turns(&self, worker: &str) -> usize {
        let mut viewer = Viewer::of(self.far.place.client().await, worker).await;
        viewer.turn("recall").await.text.split(" | ").count()
    }
}

#[tokio::test]
async fn a_leader_hands_work_to_a_worker_on_another_machine_and_that_one_writes_back() {
    let trio = Trio::new().await;
    let mut leader = Viewer::of(trio.door.client().await, &trio.leader).await;
    let work = json!({"prompt": "mcp send {\"message\": \"say I am far\"}", "node": "far",
        "working_dir": trio.far.place.dir(), "timeout_seconds": 30});
    let said = leader.turn(&format!("mcp handoff {work}")).await;
    assert_eq!(said.outcome, "completed", "{said:?}");
    assert_eq!(
        leader.turn_ends().await.text,
        "I am far",
        "the worker's message is its next prompt"
    );
    let shown = trio.door.cli(&["team", "show"], &["crew"]).await;
    assert!(shown.out.contains("far") && shown.out.contains("owner"), "{shown:?}");
}

#[tokio::test]
async fn the_owner_is_killed_while_a_worker_elsewhere_works_and_has_the_result_once() {
    let mut trio = Trio::new().await;
    let worker = trio.assign("slow 1500; say survived").await;
    trio.runs(&worker).await;
    trio.owner.place.daemon.kill9().await;
    trio.far.place.is(&worker, "idle").await;
    // Nobody keeps the team meanwhile, and a request about it says so.
    let mut client = trio.door.client().await;
    let words = client.refused(trio.about("get_team", json!({}))).await;
    assert!(words.contains("owner, which runs it, cannot be reached"), "{words}");
    trio.owner.place.daemon.start_again().await;
    linked(&trio.owner.place, 2).await;
    let result = trio.result(&trio.owner.place, &worker).await;
    assert_eq!((&result["success"], &result["result"]), (&json!(true), &json!("survived")));
    // Once: a later message has a result of its own, and the first work did not begin again.
    trio.send(&mut trio.owner.place.client().await, &worker, "say next").await;
    assert_eq!(trio.result(&trio.owner.place, &worker).await["result"], "next");
    assert_eq!(trio.turns(&worker).await, 2);
}
